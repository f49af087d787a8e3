package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// maxText bounds the texts of rows: their authors are users of the cluster.
const maxText = 400

// short returns a text of bounded length.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// seconds returns a time in Unix seconds, 0 for none.
func seconds(t *metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// broken is the row of an object that cannot be read.
type broken struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

func brokenRow(o *unstructured.Unstructured, err error) broken {
	return broken{Name: o.GetName(), Error: short(err.Error())}
}

// budgetRow is what a page gets of a PodUnavailableBudget.
type budgetRow struct {
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	Target      string   `json:"target"`
	Bound       string   `json:"bound"`
	Operations  string   `json:"operations,omitempty"`
	Total       int32    `json:"total"`
	Desired     int32    `json:"desired"`
	Available   int32    `json:"available"`
	Allowed     int32    `json:"allowed"`
	Unavailable []string `json:"unavailable,omitempty"`
	Disrupted   []string `json:"disrupted,omitempty"`
	More        int      `json:"more,omitempty"`
}

// maxNames bounds the names of pods in one row.
const maxNames = 20

func budgetOf(o *unstructured.Unstructured) any {
	b, err := kinds.ReadBudget(o)
	if err != nil {
		return brokenRow(o, err)
	}
	s := b.Status
	row := budgetRow{
		Namespace: b.Namespace, Name: b.Name, Total: s.TotalReplicas, Desired: s.DesiredAvailable,
		Available: s.CurrentAvailable, Allowed: s.UnavailableAllowed,
	}
	switch {
	case b.Spec.TargetReference != nil:
		row.Target = b.Spec.TargetReference.Kind + " " + b.Spec.TargetReference.Name
	case b.Spec.Selector != nil:
		row.Target = short(metav1.FormatLabelSelector(b.Spec.Selector))
	}
	if b.Spec.MaxUnavailable != nil {
		row.Bound = "maxUnavailable " + b.Spec.MaxUnavailable.String()
	} else if b.Spec.MinAvailable != nil {
		row.Bound = "minAvailable " + b.Spec.MinAvailable.String()
	}
	var operations []string
	for _, op := range b.Spec.ProtectOperations {
		operations = append(operations, string(op))
	}
	row.Operations = short(strings.Join(operations, ", "))
	row.Unavailable, row.More = names(s.UnavailablePods, row.More)
	row.Disrupted, row.More = names(s.DisruptedPods, row.More)
	return row
}

// names returns some of the keys in order, and adds how many others there are.
func names(of map[string]metav1.Time, more int) ([]string, int) {
	var all []string
	for name := range of {
		all = append(all, name)
	}
	slices.Sort(all)
	if len(all) > maxNames {
		return all[:maxNames], more + len(all) - maxNames
	}
	return all, more
}

// pullRow is what a page gets of an ImagePullJob.
type pullRow struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Image     string   `json:"image"`
	Ref       string   `json:"ref"`
	Desired   int32    `json:"desired"`
	Active    int32    `json:"active"`
	Succeeded int32    `json:"succeeded"`
	Failed    int32    `json:"failed"`
	Message   string   `json:"message,omitempty"`
	FailedOn  []string `json:"failedOn,omitempty"`
	Created   int64    `json:"created"`
	Started   int64    `json:"started,omitempty"`
	Completed int64    `json:"completed,omitempty"`
}

func pullOf(o *unstructured.Unstructured) any {
	job, err := kinds.ReadImagePullJob(o)
	if err != nil {
		return brokenRow(o, err)
	}
	s := job.Status
	row := pullRow{
		Namespace: job.Namespace, Name: job.Name, Image: short(job.Spec.Image), Desired: s.Desired, Active: s.Active,
		Succeeded: s.Succeeded, Failed: s.Failed, Message: short(s.Message), Created: seconds(&job.CreationTimestamp),
		Started: seconds(s.StartTime), Completed: seconds(s.CompletionTime),
		FailedOn: s.FailedNodes[:min(len(s.FailedNodes), maxNames)],
	}
	if ref, err := imagepull.Parse(job.Spec.Image); err == nil {
		row.Ref = ref.Name + ":" + ref.Tag
	}
	return row
}

// nodePull is how far one image is on a node.
type nodePull struct {
	Ref      string `json:"ref"`
	Phase    string `json:"phase"`
	Progress int32  `json:"progress,omitempty"`
	Message  string `json:"message,omitempty"`
}

// nodeImageRow is what a page gets of a NodeImage.
type nodeImageRow struct {
	Name  string     `json:"name"`
	Pulls []nodePull `json:"pulls"`
}

func nodeImageOf(o *unstructured.Unstructured) any {
	image, err := kinds.ReadNodeImage(o)
	if err != nil {
		return brokenRow(o, err)
	}
	row := nodeImageRow{Name: image.Name, Pulls: []nodePull{}}
	for name, spec := range image.Spec.Images {
		for _, wanted := range spec.Tags {
			pull := nodePull{Ref: name + ":" + wanted.Tag, Phase: "Waiting"}
			for _, tag := range image.Status.ImageStatuses[name].Tags {
				if tag.Tag == wanted.Tag && tag.Phase != "" {
					pull.Phase, pull.Progress, pull.Message = string(tag.Phase), tag.Progress, short(tag.Message)
				}
			}
			row.Pulls = append(row.Pulls, pull)
		}
	}
	slices.SortFunc(row.Pulls, func(a, b nodePull) int { return cmp.Compare(a.Ref, b.Ref) })
	return row
}

// markerRow is what a page gets of a PodProbeMarker.
type markerRow struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Selector  string        `json:"selector"`
	Matched   int64         `json:"matched"`
	Probes    []markerProbe `json:"probes"`
}

type markerProbe struct {
	Name      string `json:"name"`
	Container string `json:"container"`
	Condition string `json:"condition,omitempty"`
	Marks     string `json:"marks,omitempty"`
}

func markerOf(o *unstructured.Unstructured) any {
	marker, err := kinds.Read[v1alpha1.PodProbeMarker](o)
	if err != nil {
		return brokenRow(o, err)
	}
	row := markerRow{
		Namespace: marker.Namespace, Name: marker.Name, Matched: marker.Status.MatchedPods,
		Selector: short(metav1.FormatLabelSelector(marker.Spec.Selector)), Probes: []markerProbe{},
	}
	for _, probe := range marker.Spec.Probes {
		p := markerProbe{Name: probe.Name, Container: probe.ContainerName, Condition: probe.PodConditionType}
		var marks []string
		for _, policy := range probe.MarkerPolicy {
			var keys []string
			for key, value := range policy.Labels {
				keys = append(keys, "label "+key+"="+value)
			}
			for key := range policy.Annotations {
				keys = append(keys, "annotation "+key)
			}
			slices.Sort(keys)
			marks = append(marks, string(policy.State)+": "+strings.Join(keys, ", "))
		}
		p.Marks = short(strings.Join(marks, "; "))
		row.Probes = append(row.Probes, p)
	}
	return row
}

// probeState is the outcome of a probe in a pod.
type probeState struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Probe     string `json:"probe"`
	State     string `json:"state"`
	Since     int64  `json:"since,omitempty"`
	Message   string `json:"message,omitempty"`
}

// nodeProbesRow is what a page gets of a NodePodProbe.
type nodeProbesRow struct {
	Name   string       `json:"name"`
	States []probeState `json:"states"`
}

// nodeProbesOf returns the rows of NodePodProbes with the pods of a namespace, empty for all.
func nodeProbesOf(namespace string) func(o *unstructured.Unstructured) any {
	return func(o *unstructured.Unstructured) any {
		node, err := kinds.Read[v1alpha1.NodePodProbe](o)
		if err != nil {
			return brokenRow(o, err)
		}
		row := nodeProbesRow{Name: node.Name, States: []probeState{}}
		for i := range node.Spec.PodProbes {
			pod := &node.Spec.PodProbes[i]
			if namespace != "" && pod.Namespace != namespace {
				continue
			}
			for _, probe := range pod.Probes {
				state := probeState{Namespace: pod.Namespace, Pod: pod.Name, Probe: probe.Name, State: "Unknown"}
				if found := outcome(node, pod.UID, probe.Name); found != nil {
					state.State, state.Message = cmp.Or(string(found.State), "Unknown"), short(found.Message)
					state.Since = seconds(&found.LastTransitionTime)
				}
				row.States = append(row.States, state)
			}
		}
		return row
	}
}

// outcome returns what a node found with a probe in a pod; nil for nothing.
func outcome(node *v1alpha1.NodePodProbe, uid, probe string) *v1alpha1.ContainerProbeState {
	for i := range node.Status.PodProbeStatuses {
		pod := &node.Status.PodProbeStatuses[i]
		for j := range pod.ProbeStates {
			if pod.UID == uid && pod.ProbeStates[j].Name == probe {
				return &pod.ProbeStates[j]
			}
		}
	}
	return nil
}

// warningRow is what a page gets of an event.
type warningRow struct {
	About   string `json:"about"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int32  `json:"count"`
	Last    int64  `json:"last"`
}

// warningsOf returns the rows of the events about an object, and about those whose names begin with its name.
func warningsOf(name string) func(o *unstructured.Unstructured) any {
	return func(o *unstructured.Unstructured) any {
		e, err := kinds.Read[corev1.Event](o)
		about := ""
		if err == nil {
			about = e.InvolvedObject.Name
		}
		if about != name && !strings.HasPrefix(about, name+"-") {
			return nil
		}
		last := e.LastTimestamp.Unix()
		if e.LastTimestamp.IsZero() {
			last = e.EventTime.Unix()
		}
		return warningRow{
			About: e.InvolvedObject.Kind + " " + about, Reason: short(e.Reason), Message: short(e.Message),
			Count: max(e.Count, 1), Last: last,
		}
	}
}
