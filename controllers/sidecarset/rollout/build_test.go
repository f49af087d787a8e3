package rollout_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar"
)

// The same cases each time, unless others are asked for: go test ./sidecar/rollout -seed=1000000. A failure names the
// case.
var seed = flag.Int64("seed", 1, "the first of the random cases")

// eachCase runs n random cases.
func eachCase(t *testing.T, n int64, try func(r *random) (problem string)) {
	t.Helper()
	t.Logf("-seed=%d", *seed)
	for i := range n {
		if problem := try(&random{rand.New(rand.NewSource(*seed + i))}); problem != "" {
			t.Fatalf("-seed=%d: %s", *seed+i, problem)
		}
	}
}

type random struct{ *rand.Rand }

func (r *random) once(in int) bool     { return r.Intn(in) == 0 }
func pick[T any](r *random, of ...T) T { return of[r.Intn(len(of))] }

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

type setChange func(*v1beta1.SidecarSet)

// sidecarSet is one that selects app=shop and has the containers of some names, at images of their names.
func sidecarSet(name string, changes ...setChange) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: "100", Generation: 1, UID: types.UID(name),
	}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	return edited(set, changes...)
}

// edited is a set after a change of its spec, with the hashes that the webhook writes.
func edited(set *v1beta1.SidecarSet, changes ...setChange) *v1beta1.SidecarSet {
	set = set.DeepCopy()
	for _, change := range changes {
		change(set)
	}
	set.Default()
	full, err := sidecar.Hash(set)
	bare, err2 := sidecar.HashWithoutImage(set)
	if err = cmp.Or(err, err2); err != nil {
		panic(err)
	}
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, kruise.SidecarSetHashKey, full)
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, kruise.SidecarSetHashWithoutImageKey, bare)
	return set
}

func cold(name, image string) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Spec.Containers = append(s.Spec.Containers,
			v1beta1.SidecarContainer{Container: corev1.Container{Name: name, Image: image}})
	}
}

func hot(name, image string) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Spec.Containers = append(s.Spec.Containers, v1beta1.SidecarContainer{
			Container: corev1.Container{Name: name, Image: image},
			UpgradeStrategy: v1beta1.SidecarContainerUpgradeStrategy{
				UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty:1",
			},
		})
	}
}

// image gives all containers another image; the resource version tells of it.
func image(image string) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Generation++
		s.ResourceVersion = fmt.Sprint(100 * s.Generation)
		for i := range s.Spec.Containers {
			s.Spec.Containers[i].Image = image
		}
	}
}

func env(s *v1beta1.SidecarSet) {
	s.Generation++
	for i := range s.Spec.Containers {
		s.Spec.Containers[i].Env = append(s.Spec.Containers[i].Env, corev1.EnvVar{
			Name: fmt.Sprint("E", s.Generation), Value: "1",
		})
	}
}

func paused(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Paused = true }
func resumed(s *v1beta1.SidecarSet) {
	s.Spec.UpdateStrategy.Paused = false
}

func notUpdate(s *v1beta1.SidecarSet) {
	s.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
}

func partition(v string) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Partition = amount(v) }
}

func maxUnavailable(v string) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = amount(v) }
}

// amount is nil for an empty text.
func amount(v string) *intstr.IntOrString {
	if v == "" {
		return nil
	}
	a := intstr.Parse(v)
	return &a
}

func only(key, value string) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func patches(policy v1beta1.SidecarSetPatchPolicyType, key, value string) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Spec.PatchPodMetadata = append(s.Spec.PatchPodMetadata, v1beta1.SidecarSetPatchPodMetadata{
			PatchPolicy: policy, Annotations: map[string]string{key: value},
		})
	}
}

// podOf is a pod that was given some sets, and runs.
func podOf(name string, sets ...*v1beta1.SidecarSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "shop"},
		CreationTimestamp: metav1.NewTime(noon().Add(-24 * time.Hour)),
	}}
	pod.Spec.NodeName = "node"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	injection, err := sidecar.Inject(pod, parsed(sets...), sidecar.Options{Now: noon().Add(-24 * time.Hour)})
	if err != nil {
		panic(err)
	}
	if injection.Pod != nil {
		pod = injection.Pod
	}
	return started(pod)
}

func parsed(sets ...*v1beta1.SidecarSet) []*sidecar.Set {
	all := make([]*sidecar.Set, len(sets))
	for i := range sets {
		set, err := sidecar.Parse(sets[i])
		if err != nil {
			panic(err)
		}
		all[i] = set
	}
	return all
}

// started lets all containers of a pod run their images.
func started(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	for i := range pod.Spec.Containers {
		restart(pod, pod.Spec.Containers[i].Name)
	}
	return readied(pod)
}

// restart lets one container run its image, as a kubelet tells it.
func restart(pod *corev1.Pod, name string) {
	at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if at < 0 {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: name, RestartCount: -1})
		at = len(pod.Status.ContainerStatuses) - 1
	}
	c := pod.Spec.Containers[slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == name
	})]
	s := &pod.Status.ContainerStatuses[at]
	s.RestartCount++
	s.Image, s.ImageID = "docker.io/library/"+c.Image, imageID(c.Image)
	s.ContainerID = fmt.Sprintf("containerd://%s-%d", name, s.RestartCount)
	s.Ready, s.State = true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func imageID(image string) string {
	if name, digest, ok := strings.Cut(image, "@"); ok {
		name, _, _ = strings.Cut(name, ":")
		return "docker.io/library/" + name + "@" + digest
	}
	return "sha256:" + image
}

// failed lets one container wait for an image that cannot be pulled.
func failed(pod *corev1.Pod, name string) {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name {
			s.Ready, s.State = false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		}
	}
}

// readied makes the condition Ready what the containers are.
func readied(pod *corev1.Pod) *corev1.Pod {
	status := corev1.ConditionTrue
	for i := range pod.Status.ContainerStatuses {
		if !pod.Status.ContainerStatuses[i].Ready {
			status = corev1.ConditionFalse
		}
	}
	setCondition(pod, corev1.PodCondition{
		Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(noon().Add(-23 * time.Hour)),
	})
	return pod
}

func setCondition(pod *corev1.Pod, c corev1.PodCondition) {
	at := slices.IndexFunc(pod.Status.Conditions, func(o corev1.PodCondition) bool { return o.Type == c.Type })
	if at < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if pod.Status.Conditions[at].Status != c.Status || c.Type != corev1.PodReady {
		pod.Status.Conditions[at] = c
	}
}

// input of a plan for a set and its pods.
func input(set *v1beta1.SidecarSet, pods ...*corev1.Pod) rollout.Input {
	return rollout.Input{Set: set, Revision: fmt.Sprintf("%s-%d", set.Name, set.Generation), Pods: pods, Now: noon()}
}

func compute(t *testing.T, in rollout.Input) rollout.Result {
	t.Helper()
	pass, err := rollout.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return pass.Result()
}

// status is the status of a set without changes.
func status(in rollout.Input) (v1beta1.SidecarSetStatus, error) {
	pass, err := rollout.Plan(in)
	return pass.Result().Status, err
}

// applied is the pod after a change, as an API server applies the patch.
func applied(c *rollout.Change) *corev1.Pod {
	pod, err := appliedTo(c.Pod, c)
	if err != nil {
		panic(err)
	}
	return pod
}

// appliedTo applies a change to the pod as it is stored now. A test that fails is an error.
func appliedTo(live *corev1.Pod, c *rollout.Change) (*corev1.Pod, error) {
	data, err := c.Data()
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	if raw, err = patch.Apply(raw); err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, json.Unmarshal(raw, pod)
}

// imagesOf and annotationsOf are what a change writes.
func imagesOf(c *rollout.Change) map[string]string {
	all := map[string]string{}
	for i, container := range applied(c).Spec.Containers {
		if container.Image != c.Pod.Spec.Containers[i].Image {
			all[container.Name] = container.Image
		}
	}
	return all
}

func annotationsOf(c *rollout.Change) map[string]string {
	all := applied(c).Annotations
	maps.DeleteFunc(all, func(key, value string) bool {
		was, had := c.Pod.Annotations[key]
		return had && was == value
	})
	return all
}

// finished sends changes, and those that follow from their answers, in the order of the pass, and returns the pods.
func finished(pass *rollout.Pass, changes ...*rollout.Change) map[types.UID]*corev1.Pod {
	pods := map[types.UID]*corev1.Pod{}
	for len(changes) > 0 {
		pod := applied(changes[0])
		pods[pod.UID] = pod
		changes = append(pass.Answer(noon(), changes[0], pod, nil), changes[1:]...)
	}
	return pods
}

// updated are the names of the pods that a plan updates.
func updated(r rollout.Result) []string {
	names := []string{}
	for _, c := range r.Updates {
		names = append(names, c.Pod.Name)
	}
	return names
}

func codes(notes []note.Note) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// upgradable is what the condition of a pod says, and of which sets.
func upgradable(pod *corev1.Pod) string {
	c := lifecycle.ConditionOf(pod, kruise.SidecarSetUpgradable)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

// updatedAt is when the pod says that the set updated it.
func updatedAt(t *testing.T, pod *corev1.Pod, set string) time.Time {
	t.Helper()
	entries, err := sidecar.ReadInjected(pod.Annotations[kruise.SidecarSetHashKey])
	if err != nil {
		t.Fatal(err)
	}
	return entries[set].UpdateTimestamp.Time
}
