package dashboard

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/status"
	"github.com/kruisekit/kruisekit/sidecar"
)

// workloadRow is what a page gets of a workload.
type workloadRow struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Created   int64  `json:"created"`
	Deleting  bool   `json:"deleting,omitempty"`
	// Line is that of rollout status.
	Line   string `json:"line"`
	Done   bool   `json:"done"`
	Failed string `json:"failed,omitempty"`
	counts
	// Kept is how many pods stay at the older revision, MinAvailable how many stay available.
	Kept           int32    `json:"kept,omitempty"`
	MaxUnavailable int32    `json:"maxUnavailable,omitempty"`
	MinAvailable   int32    `json:"minAvailable,omitempty"`
	MinReady       int64    `json:"minReady,omitempty"`
	Policy         string   `json:"policy,omitempty"`
	Pausable       bool     `json:"pausable,omitempty"`
	Paused         bool     `json:"paused,omitempty"`
	Protection     string   `json:"protection,omitempty"`
	Update         string   `json:"update,omitempty"`
	Images         []string `json:"images,omitempty"`
	Reasons        []string `json:"reasons,omitempty"`
}

// counts are how many pods a workload has, by its status.
type counts struct {
	Replicas  int64 `json:"replicas"`
	Updated   int64 `json:"updated"`
	Ready     int64 `json:"ready"`
	Available int64 `json:"available"`
}

// listed returns the row of a workload; nil for a set of apps that is not rolled out in place.
func listed(o *unstructured.Unstructured) any {
	if kinds.IsNative(o) && !kinds.IsInPlace(o) {
		return nil
	}
	return workloadOf(o)
}

// workloadOf returns the row of a workload.
func workloadOf(o *unstructured.Unstructured) any {
	kind := o.GroupVersionKind()
	row := workloadRow{
		Kind: nameOf(kind.GroupKind()), Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
		Created: o.GetCreationTimestamp().Unix(), Deleting: o.GetDeletionTimestamp() != nil, counts: countsOf(o),
		Pausable: kinds.PausePath(kind) != nil || kinds.IsInPlace(o), Paused: kinds.Paused(o),
		Protection: short(o.GetLabels()[kruise.DeletionProtectionKey]), Images: imagesOf(o),
	}
	line, done, err := rollout.Status(o)
	row.Line, row.Done = short(strings.TrimSpace(line)), done
	if err != nil {
		row.Failed = short(err.Error())
	}
	if workload, err := forecast.Decode(o); err == nil {
		b := forecast.BoundsOf(workload)
		row.Kept, row.MaxUnavailable, row.MinAvailable = b.Partition, b.MaxUnavailable, b.MinAvailable
	}
	if s, is, err := kinds.StrategyOf(o); is && err == nil {
		row.Policy, row.Update = string(s.Policy), short(s.UpdateRevision)
		if s.OnDelete {
			row.Policy = "OnDelete"
		}
	}
	if p := kinds.Progress(o); p != nil {
		row.Update, row.Updated, row.Ready = short(p.Revision), int64(p.Updated), int64(p.Ready)
	}
	row.MinReady = minReadyOf(o)
	if set, err := kinds.ReadSidecarSet(o); kinds.Is(o, kinds.SidecarSet) && err == nil {
		row.Update, _ = sidecar.Hash(set)
	}
	for _, reason := range status.Conditions(o) {
		row.Reasons = append(row.Reasons, short(reason))
	}
	return row
}

// minReadyOf returns for how long a pod must be ready to be available.
func minReadyOf(o *unstructured.Unstructured) int64 {
	for _, at := range [][]string{{"spec"}, {"spec", "updateStrategy", "rollingUpdate"}} {
		if n, found, err := unstructured.NestedInt64(o.Object, append(at, "minReadySeconds")...); found && err == nil {
			return n
		}
	}
	return 0
}

// countsOf reads the counts of a status, whose fields have other names in some kinds.
func countsOf(o *unstructured.Unstructured) counts {
	first := func(fields ...string) int64 {
		for _, field := range fields {
			parent, name, _ := strings.Cut(field, ".")
			if n, found, err := unstructured.NestedInt64(o.Object, parent, name); found && err == nil {
				return n
			}
		}
		return 0
	}
	return counts{
		Replicas: first("status.desiredNumberScheduled", "spec.replicas", "status.matchedPods", "status.desired",
			"status.replicas"),
		Updated: first("status.updatedNumberScheduled", "status.updatedReplicas", "status.updatedPods", "status.succeeded"),
		Ready:   first("status.numberReady", "status.readyReplicas", "status.readyPods", "status.succeeded"),
		Available: first("status.numberAvailable", "status.availableReplicas", "status.readyReplicas", "status.readyPods",
			"status.succeeded"),
	}
}

// maxImages bounds the images of a row.
const maxImages = 8

func imagesOf(o *unstructured.Unstructured) []string {
	containers, err := kinds.Containers(o, "containers")
	if err != nil {
		return nil
	}
	all := map[string]bool{}
	for i := range containers {
		all[short(containers[i].Name+" "+containers[i].Image)] = true
	}
	list := slices.Sorted(maps.Keys(all))
	return list[:min(len(list), maxImages)]
}
