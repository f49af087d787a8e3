package podprobe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// TestRestored: etcd is restored to an older version before the cache has shown a write. Within two minutes the daemon
// probes what the restored NodePodProbe asks for, after one live read.
func TestRestored(t *testing.T) {
	w := newWorld(t, asking(1, map[string]int{"a": 2}))
	w.tick(30 * time.Second) // versions go up
	older := w.stored()
	older.Spec.PodProbes, older.Status = older.Spec.PodProbes[:1], v1alpha1.NodePodProbeStatus{}
	older.ResourceVersion = ""
	w.node.mu.Lock()
	w.node.good["a-0"] = false // a state changes, which is written
	w.node.mu.Unlock()
	w.written = func() {
		w.written = nil
		w.server = apiserver.New(w.server.Scheme(), func() time.Time { return w.now })
		if err := w.server.Put(older); err != nil {
			t.Fatal(err)
		}
	}
	w.tick(2 * time.Minute)
	if diff := cmp.Diff(map[string]string{"a-0": string(v1alpha1.ProbeFailed)}, w.states()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if w.reads != 1 {
		t.Errorf("%d live reads", w.reads)
	}
	if n := w.writes(); n > 70 {
		t.Errorf("%d writes", n)
	}
}

// TestRestoredAtRest: no result and no event follow the restored NodePodProbe.
func TestRestoredAtRest(t *testing.T) {
	w := newWorld(t, asking(3600, map[string]int{"a": 2}))
	w.written = func() {
		w.written = nil
		older := w.stored()
		older.Spec.PodProbes, older.Status = older.Spec.PodProbes[:0], v1alpha1.NodePodProbeStatus{}
		older.ResourceVersion = ""
		w.server = apiserver.New(w.server.Scheme(), func() time.Time { return w.now })
		if err := w.server.Put(older); err != nil {
			t.Fatal(err)
		}
		w.news.Store(true) // the event of the cache
	}
	for range 4000 { // until the first results are written
		if w.tick(time.Second); w.written == nil {
			break
		}
	}
	w.tick(2 * time.Minute)
	if probes := len(w.r.prober.schedule.probes); probes != 0 {
		t.Errorf("%d probes are left", probes)
	}
}
