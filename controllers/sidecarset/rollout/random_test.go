package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// TestRandomWorlds: two sets on the same pods get new images, good and bad ones, are paused and resumed, also before
// the last change is done, and the controller dies now and then. When a good image is left alone, all pods have it.
func TestRandomWorlds(t *testing.T) {
	eachCase(t, 150, func(r *random) string {
		budget := maxUnavailable(pick(r, "1", "2", "50%", "100%"))
		sets := []*v1beta1.SidecarSet{
			sidecarSet("hot", hot("proxy", "proxy:1"), budget), sidecarSet("cold", cold("tail", "tail:1"), budget),
		}
		w := newWorld(t, -1, sets...).populate(1 + r.Intn(4))
		for i := range 12 {
			r.live(w, i)
		}
		for _, name := range []string{"hot", "cold"} {
			w.change(name, "a good image", image(name+":good"), resumed, partition("0"))
		}
		w.left = r.Intn(4)
		w.settle()
		if problem := unfinished(w); problem != "" {
			return problem + "\n" + strings.Join(w.tale, "\n")
		}
		return ""
	})
}

// live lets one thing happen, and some of its consequences.
func (r *random) live(w *world, i int) {
	name := pick(r, "hot", "cold")
	switch r.Intn(5) {
	case 0:
		w.change(name, "paused", paused)
	case 1:
		w.change(name, "resumed", resumed)
	case 2:
		w.change(name, "partition", partition(pick(r, "0", "1", "50%")))
	default:
		w.change(name, "an image", image(pick(r, "proxy:1", "bad:1", fmt.Sprint("image:", i), fmt.Sprint("bad:", i))))
	}
	for range r.Intn(6) {
		if r.once(8) {
			w.left = r.Intn(3)
		}
		if r.once(2) {
			w.reconcile(pick(r, w.sets...))
			continue
		}
		r.Shuffle(len(w.pods), func(i, j int) { w.pods[i], w.pods[j] = w.pods[j], w.pods[i] })
		w.kubelet()
	}
	w.left = -1
}

// unfinished says what is not as it should be in the end.
func unfinished(w *world) string {
	for _, set := range w.sets {
		s, err := status(input(set, w.pods...))
		if n := int32(len(w.pods)); err != nil || s.MatchedPods != n || s.UpdatedReadyPods != n {
			return fmt.Sprintf("%s: %+v (%v)", set.Name, s, err)
		}
	}
	for _, pod := range w.pods {
		got := picture(pod)
		if strings.Count(got, "=hot:good") != 1 || strings.Count(got, "=empty:1") != 1 ||
			strings.Count(got, "=cold:good") != 1 || !strings.Contains(got, " True ") {
			return got
		}
		if now := states(pod); strings.Count(now, "sha256:hot:good") != 1 || strings.Count(now, "sha256:empty:1") != 1 ||
			strings.Count(now, "sha256:cold:good") != 1 {
			return "it runs " + now
		}
	}
	return ""
}
