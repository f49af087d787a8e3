package pod_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

const partial = `{selector: {matchLabels: {app: web}}, containers: [{name: log, image: "log:new"}], updateStrategy: {partition: "30%"},
  injectionStrategy: {revision: {revisionName: a-old, policy: Partial}}}`

func old() appsv1.ControllerRevision {
	return appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "a-old", UID: "r", ResourceVersion: "1", Labels: map[string]string{
			appsv1beta1.SidecarSetNameLabel: "a", appsv1beta1.SidecarSetCustomVersionLabel: "v1",
		}},
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"log","image":"log:old"}]}}`)},
	}
}

// The share of pods that get the former revision is what the set asks for; the same request gets the same, and so does
// the pod when it comes again by another request.
func TestPartial(t *testing.T) {
	s := &shelf{revisions: []appsv1.ControllerRevision{old()}}
	w := hook(t, s, pod.Options{}, newSet(t, "a", partial))
	former := 0
	const pods = 600
	for i := range pods {
		req := request(t, fmt.Sprintf("0c8e2c4a-6a3c-4b6e-9a52-%012d", i), plain)
		first := w.Review(t.Context(), req)
		after := patched(t, req, first)
		if string(first.Patch) != string(w.Review(t.Context(), req).Patch) {
			t.Fatal("the same request gets another pod")
		}
		if strings.Contains(string(after), "log:old") {
			former++
		}
		if again := w.Review(t.Context(), request(t, fmt.Sprintf("other-%d", i), string(after))); len(again.Patch) > 0 {
			t.Fatalf("pod %d comes again and gets %s", i, again.Patch)
		}
	}
	if former < pods*25/100 || former > pods*35/100 {
		t.Errorf("%d of %d pods get the former revision, want 30%%", former, pods)
	}
	t.Logf("%d of %d pods got the former revision", former, pods)
}

func TestPinned(t *testing.T) {
	for name, pin := range map[string]string{"by name": "revisionName: a-old", "by version": "customVersion: v1"} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{revisions: []appsv1.ControllerRevision{old()}}
			spec := strings.NewReplacer("revisionName: a-old", pin, ", policy: Partial", "").Replace(partial)
			w := hook(t, s, pod.Options{}, newSet(t, "a", spec))
			req := request(t, "u", plain)
			same(t, "the pod gets the former revision", []string{"main=m", "log=log:old"},
				describe(t, patched(t, req, w.Review(t.Context(), req))))
			// The revision is written again, as another is of the same name.
			s.revisions[0].ResourceVersion = "2"
			s.revisions[0].Data.Raw = []byte(`{"spec":{"containers":[{"name":"log","image":"log:older"}]}}`)
			same(t, "what was restored is not kept too long", []string{"main=m", "log=log:older"},
				describe(t, patched(t, req, w.Review(t.Context(), req))))
		})
	}
}

// A revision that the cache does not have yet is read from the API server; one that it has is not.
func TestPinnedToNew(t *testing.T) {
	for name, pin := range map[string]string{"by name": "revisionName: a-old", "by version": "customVersion: v1"} {
		t.Run(name, func(t *testing.T) {
			live, cached := &shelf{revisions: []appsv1.ControllerRevision{old()}}, &shelf{}
			set := newSet(t, "a", strings.NewReplacer("revisionName: a-old", pin, ", policy: Partial", "").Replace(partial))
			w, err := over(pod.SidecarLookups{Sets: indexOf(set), Namespaces: cached, Revisions: cached, Live: live},
				pod.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				req := request(t, "u", plain)
				same(t, "the pod gets the former revision", []string{"main=m", "log=log:old"},
					describe(t, patched(t, req, w.Review(t.Context(), req))))
				cached.revisions = live.revisions
			}
			if live.reads != 1 {
				t.Errorf("%d reads of the API server", live.reads)
			}
			cached.revisions, live.revisions = nil, nil
			refusedWith(t, w.Review(t.Context(), request(t, "u", plain)), 422,
				"sidecarsets[a].spec.injectionStrategy.revision."+strings.SplitN(pin, ":", 2)[0])
		})
	}
}

// Pods whose set is pinned to a missing revision are refused until the revision exists, which is read once a second.
func TestPinnedToMissing(t *testing.T) {
	live := &shelf{}
	w, err := over(pod.SidecarLookups{
		Sets: indexOf(newSet(t, "a", partial)), Namespaces: live, Revisions: &shelf{}, Live: live,
	}, pod.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		refusedWith(t, w.Review(t.Context(), request(t, "u", plain)), 422,
			"sidecarsets[a].spec.injectionStrategy.revision.revisionName")
	}
	if live.reads > 3 {
		t.Errorf("%d reads for 20 pods", live.reads)
	}
	live.revisions = []appsv1.ControllerRevision{old()}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 10*time.Second, false,
		func(ctx context.Context) (bool, error) { return w.Review(ctx, request(t, "u", plain)).Allowed, nil }); err != nil {
		t.Errorf("the revision exists, and pods are refused: %v", err)
	}
}

// What no object can be called is asked for nowhere.
func TestPinnedToNothing(t *testing.T) {
	for _, name := range []string{`""`, "a/b", "."} {
		live := &shelf{fault: errors.New("no such request")}
		set := newSet(t, "a", strings.Replace(partial, "a-old", name, 1))
		w, err := over(pod.SidecarLookups{Sets: indexOf(set), Namespaces: live, Revisions: live, Live: live},
			pod.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		refusedWith(t, w.Review(t.Context(), request(t, "u", plain)), 422,
			"sidecarsets[a].spec.injectionStrategy.revision.revisionName")
	}
}

// What each step did is counted.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 { // a second webhook of the process counts together with the first
		hook(t, nil, pod.Options{Registerer: registry})
	}
	broken := newSet(t, "b", `{selector: {matchLabels: {app: db}, matchExpressions: [{key: x, operator: Near}]}}`)
	w := hook(t, nil, pod.Options{Registerer: registry}, newSet(t, "a", logs), broken)
	for _, p := range []string{plain, strings.Replace(plain, "web", "db", 1), owned} {
		w.Review(t.Context(), request(t, "u", p))
	}
	w = hook(t, nil, pod.Options{Registerer: registry}, open(broken))
	w.Review(t.Context(), request(t, "u", strings.Replace(plain, "web", "db", 1)))
	got := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Counter != nil && m.Counter.GetValue() > 0 {
				got[labelOf(m.Label, "step")+" "+labelOf(m.Label, "outcome")] = m.Counter.GetValue()
			}
			if m.Histogram != nil && labelOf(m.Label, "step") == "sidecars" {
				got["seconds"] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	same(t, "outcomes", map[string]float64{
		"readiness changed": 1, "readiness skipped": 3, "sidecars changed": 1, "sidecars skipped": 1, "sidecars refused": 1,
		"sidecars lacking": 1,
		"launch skipped":   3, "seconds": 4,
	}, got)
}

func labelOf[L interface {
	GetName() string
	GetValue() string
}](labels []L, name string) string {
	for _, l := range labels {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
