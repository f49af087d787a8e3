package inplace

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
)

// Diff returns how pods made from one template become as if made from another. The error is a *BlockedError when they
// cannot without being recreated. Containers are matched by name; their order, and fields that only got their
// default, are no difference.
func Diff(from, to *corev1.PodTemplateSpec, p Policy) (*Change, error) {
	from, to = revision.Comparable(
		cmp.Or(from, &corev1.PodTemplateSpec{}), cmp.Or(to, &corev1.PodTemplateSpec{}))
	d := differ{
		policy: p, change: &Change{Images: map[string]string{}, Resources: map[string]corev1.ResourceRequirements{}},
	}
	before, after := QOSClass(&from.Spec), QOSClass(&to.Spec)
	d.containers("spec.containers", from.Spec.Containers, to.Spec.Containers, false)
	d.containers("spec.initContainers", from.Spec.InitContainers, to.Spec.InitContainers, true)
	d.podResources(from.Spec.Resources, to.Spec.Resources)
	if len(d.change.Resources) > 0 && before != after {
		d.block("spec.containers", "a running pod keeps its class of service: "+string(before)+" would become "+string(after))
	}
	d.unknownFields(from, to)
	d.metadata(from, to)
	from.Spec.Containers, from.Spec.InitContainers = nil, nil
	to.Spec.Containers, to.Spec.InitContainers = nil, nil
	if !equal(&from.Spec, &to.Spec) {
		d.fixed("spec", &from.Spec, &to.Spec)
	}
	if len(d.blocks) > 0 {
		slices.SortStableFunc(d.blocks, func(a, b Block) int { return cmp.Compare(a.Path, b.Path) })
		return nil, &BlockedError{Blocks: d.blocks}
	}
	return d.change, nil
}

// unknownFields compares the fields that templates keep because their types lack them.
func (d *differ) unknownFields(from, to *corev1.PodTemplateSpec) {
	var kept [2]any
	for i, t := range []*corev1.PodTemplateSpec{from, to} {
		text := t.Annotations[revision.UnknownFieldsKey]
		if text == "" || utiljson.Unmarshal([]byte(text), &kept[i]) != nil {
			kept[i] = map[string]any{}
		}
		delete(t.Annotations, revision.UnknownFieldsKey)
	}
	for _, parts := range differing(nil, kept[0], kept[1]) {
		d.block(strings.Join(parts, "."), "the field is newer than this release: only a new pod gets it")
	}
}

type differ struct {
	policy Policy
	change *Change
	blocks []Block
}

func (d *differ) block(path, why string) {
	d.blocks = append(d.blocks, Block{Path: path, Why: why})
}

func (d *differ) containers(path string, from, to []corev1.Container, init bool) {
	for i := range from {
		if find(to, from[i].Name) == nil {
			d.block(path+"["+from[i].Name+"]", "a running pod keeps its containers: this one is removed")
		}
	}
	for i := range to {
		name := path + "[" + to[i].Name + "]"
		old := find(from, to[i].Name)
		if old == nil {
			d.block(name, "a running pod gets no more containers: this one is added")
			continue
		}
		d.container(name, old, &to[i], init)
	}
}

// container compares two containers, which are copies, by evening out what may change.
func (d *differ) container(path string, from, to *corev1.Container, init bool) {
	switch {
	case from.Image == to.Image:
	case !init:
		d.change.Images[to.Name] = to.Image
	case isSidecar(from) && isSidecar(to):
		d.block(path+".image", "native sidecars are not updated in place")
	default:
		d.block(path+".image", "an init container that has run does not run again")
	}
	from.Image = to.Image
	if !init {
		d.resources(path+".resources", to.Name, &from.Resources, &to.Resources)
	}
	writeAlike(&from.Resources, &to.Resources)
	if !equal(from, to) {
		d.fixed(path, from, to)
	}
}

// writeAlike gives amounts that are equal the same spelling: 1000m is 1, and 1024Mi is 1Gi.
func writeAlike(from, to *corev1.ResourceRequirements) {
	for _, lists := range [][2]corev1.ResourceList{{from.Limits, to.Limits}, {from.Requests, to.Requests}} {
		for name, before := range lists[0] {
			if after, ok := lists[1][name]; ok && before.Cmp(after) == 0 {
				lists[0][name] = after
			}
		}
	}
}

// equal compares by meaning. What is the same value by value has the same meaning, and is found much faster: it is the
// usual case, for most of what two templates hold was written once.
func equal[T any](a, b *T) bool {
	return reflect.DeepEqual(a, b) || apiequality.Semantic.DeepEqual(a, b)
}

// podResources compares the resources of pods as a whole.
func (d *differ) podResources(from, to *corev1.ResourceRequirements) {
	if from == nil || to == nil {
		return // a running pod cannot get or lose them
	}
	if d.policy.PodResources {
		d.resources("spec.resources", podLevel, from, to)
	}
	writeAlike(from, to)
}

// podLevel is the name under which Change.Resources has the resources of the pod as a whole.
const podLevel = ""

func (d *differ) resources(path, name string, from, to *corev1.ResourceRequirements) {
	if d.policy.Resources == ResourcesFixed {
		return
	}
	changed := corev1.ResourceRequirements{
		Limits:   d.amounts(path+".limits", from.Limits, to.Limits),
		Requests: d.amounts(path+".requests", from.Requests, to.Requests),
	}
	if len(changed.Limits) > 0 || len(changed.Requests) > 0 {
		d.change.Resources[name] = changed
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		for _, list := range []corev1.ResourceList{from.Limits, from.Requests, to.Limits, to.Requests} {
			delete(list, name)
		}
	}
}

// amounts are the changed amounts of cpu and memory.
func (d *differ) amounts(path string, from, to corev1.ResourceList) corev1.ResourceList {
	var changed corev1.ResourceList
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		before, had := from[name]
		after, has := to[name]
		switch {
		case had && !has:
			d.block(path+"."+string(name), "it cannot be taken away from a running container")
		case has && !had && d.policy.Resources != ResourcesAdded:
			d.block(path+"."+string(name), "it cannot be added to a running container here")
		case has && before.Cmp(after) != 0:
			if changed == nil {
				changed = corev1.ResourceList{}
			}
			changed[name] = after.DeepCopy()
		}
	}
	return changed
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func find(in []corev1.Container, name string) *corev1.Container {
	for i := range in {
		if in[i].Name == name {
			return &in[i]
		}
	}
	return nil
}

// Block is one reason why a change cannot be made in a running pod.
type Block struct {
	// Path of the field in the template, with the names of containers and other named things in brackets, as in
	// spec.containers[app].env[LEVEL].value.
	Path string
	// Why it cannot change.
	Why string
}

// BlockedError reports that a change cannot be made in a running pod: the pod must be recreated.
type BlockedError struct {
	// Blocks are all the reasons, by path.
	Blocks []Block
}

// shown is how many reasons a message lists.
const shown = 5

// Error lists the first few reasons.
func (e *BlockedError) Error() string {
	var all []string
	for _, b := range e.Blocks[:min(len(e.Blocks), shown)] {
		all = append(all, b.Path+": "+b.Why)
	}
	if more := len(e.Blocks) - shown; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return "cannot be changed in place: " + strings.Join(all, "; ")
}

// whyFixed is the reason for a field that is none of those that may change. parts are the path from the
// container on, or from the template on.
func whyFixed(parts []string) string {
	const other = "the API server lets it not change in a running pod"
	if len(parts) == 0 {
		return other
	}
	switch first, _, _ := strings.Cut(parts[0], "["); first {
	case "volumes":
		return "a running pod keeps its volumes"
	case "nodeName", "nodeSelector", "affinity", "topologySpreadConstraints", "schedulerName", "tolerations":
		return "a running pod stays where it is scheduled"
	case "env", "envFrom":
		return "a container keeps its environment, but for values fed from labels and annotations"
	case "command", "args", "workingDir":
		return "a container keeps its command"
	case "volumeMounts", "volumeDevices":
		return "a running pod keeps its mounts"
	case "livenessProbe", "readinessProbe", "startupProbe":
		return "a running pod keeps its probes"
	case "resources":
		if last := parts[len(parts)-1]; last == "cpu" || last == "memory" {
			return "cpu and memory are not changed in place here"
		}
		return "resources other than cpu and memory stay as they are"
	}
	return other
}

// fixed adds every field in which two values differ, with why it cannot change.
func (d *differ) fixed(path string, from, to any) {
	x, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	y, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(to)
	for _, parts := range differing(nil, x, y) {
		d.block(strings.Join(append([]string{path}, parts...), "."), whyFixed(parts))
	}
}

// differing returns the paths of the fields in which two values differ. The items of a list are compared by their
// names; a list whose items have none, or another order, differs as a whole.
func differing(at []string, from, to any) [][]string {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	fields, others := byKey(from), byKey(to)
	if fields == nil || others == nil {
		return [][]string{at}
	}
	keys := maps.Clone(fields)
	maps.Copy(keys, others)
	var paths [][]string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := append(slices.Clip(at), key)
		if last := len(at) - 1; strings.HasPrefix(key, "[") && last >= 0 {
			inner = append(slices.Clone(at[:last]), at[last]+key)
		}
		paths = append(paths, differing(inner, fields[key], others[key])...)
	}
	if len(paths) == 0 {
		return [][]string{at}
	}
	return paths
}

// byKey returns the fields of an object, or the items of a list by their names in brackets; nil for neither.
func byKey(value any) map[string]any {
	if object, ok := value.(map[string]any); ok {
		return object
	}
	list, _ := value.([]any)
	items := make(map[string]any, len(list))
	for _, item := range list {
		object, _ := item.(map[string]any)
		if name, ok := object["name"].(string); ok {
			items["["+name+"]"] = item
		}
	}
	if len(list) == 0 || len(items) != len(list) {
		return nil
	}
	return items
}

// The codes of notes.
const (
	// NoteNotStarted waits for the kubelet's first report of a new pod, after which Next opens the readiness gate.
	NoteNotStarted = "InPlaceNotStarted"
	// NoteGrace waits for the end of the grace period.
	NoteGrace = "InPlaceGracePeriod"
	// NoteBatch waits for the containers of a batch to be ready before the next.
	NoteBatch = "InPlaceBatch"
	// NoteImage waits for a container to run its new image.
	NoteImage = "InPlaceImage"
	// NoteEnv waits for a container to run with its new environment.
	NoteEnv = "InPlaceEnv"
	// NoteDaemon waits for what only a daemon on the node can report.
	NoteDaemon = "InPlaceNoDaemon"
	// NoteResize waits for a container to get its new resources.
	NoteResize = "InPlaceResize"
	// NoteDeferred waits for room on the node.
	NoteDeferred = "InPlaceResizeDeferred"
	// NoteInfeasible is a pod whose node can never satisfy the requested resources.
	NoteInfeasible = "InPlaceResizeInfeasible"
	// NoteFinished is a pod that has finished, in which nothing starts.
	NoteFinished = "InPlacePodFinished"
	// NoteUnreadable is an annotation that cannot be parsed.
	NoteUnreadable = "InPlaceUnreadable"
	// NoteRelabel waits for the pod to be ready before the revision label changes, see RelabelLast.
	NoteRelabel = "InPlaceRelabel"
	// NoteNoGate is a pod whose containers restart in traffic, since it lacks the readiness gate.
	NoteNoGate = "InPlaceNoReadinessGate"
)

func newNote(pod *corev1.Pod, code, text string) note.Note {
	return note.Note{Level: levelOf(code), Code: code, Object: pod.Name, Text: text}
}

func levelOf(code string) note.Level {
	switch code {
	case NoteDaemon, NoteDeferred, NoteInfeasible, NoteUnreadable:
		return note.Blocked
	case NoteFinished, NoteNoGate:
		return note.Info
	}
	return note.Waiting
}
