package disruption

import (
	"cmp"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/metrics"
)

// reasonRefused is the reason of the events of pods, for every operation.
const reasonRefused = "PubPreventPodDeletion"

// Refusal is what the option Audit of a Guard receives. Its JSON is a line of the audit log of the reference.
type Refusal struct {
	// Event is PodUnavailableBudget.
	Event string
	// Kind, Namespace and Name are those of the controller of the pod, or of the pod where there is none.
	Kind, Namespace, Name string
	// User who asked for the operation.
	User string `json:"UserAgent"`
}

// report is where refusals are reported.
type report struct {
	recorder driver.EventRecorder
	audit    func(Refusal)
	counts   *metrics.Named
}

func newReport(o GuardOptions) (report, error) {
	counts, err := metrics.NewNamed(o.Registerer, prometheus.CounterOpts{
		Name: "pod_unavailable_budget",
		Help: "Operations on pods that a PodUnavailableBudget refused, by the workload of the pod and the user.",
	}, "kind_namespace_name", "username")
	return report{o.Recorder, o.Audit, counts}, err
}

// refused reports a refusal.
func (r report) refused(d Disruption, decision Decision) {
	e := refusalOf(d)
	r.counts.Inc(e.Kind+"_"+cmp.Or(e.Namespace, metav1.NamespaceDefault)+"_"+e.Name, e.User)
	if r.recorder != nil {
		r.recorder.Event(d.Pod, corev1.EventTypeWarning, reasonRefused, fmt.Sprintf(
			"PodUnavailableBudget %s refused operation %s: %s", decision.Budget.Name, d.Operation, decision.Text))
	}
	if r.audit != nil {
		r.audit(e)
	}
}

func refusalOf(d Disruption) Refusal {
	e := Refusal{
		Event: "PodUnavailableBudget", Kind: "unknown", Namespace: d.Pod.Namespace, Name: d.Pod.Name, User: d.User,
	}
	if owner := metav1.GetControllerOfNoCopy(d.Pod); owner != nil {
		e.Kind, e.Name = owner.Kind, owner.Name
	}
	return e
}
