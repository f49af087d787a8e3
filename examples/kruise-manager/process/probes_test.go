package process

import (
	"context"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/note"
)

// A note is logged when it is new for its node, and not at each pass.
func TestNotesOfProbes(t *testing.T) {
	logged := 0
	ctx := log.IntoContext(context.Background(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
	explain := nodePodProbes().Explain
	port, full := note.Note{Code: "ProbePortUnresolved", Object: "shop/m"}, note.Note{
		Code: "NodeProbesFull", Object: "shop/m",
	}
	for _, c := range []struct {
		why, node string
		notes     []note.Note
		want      int
	}{
		{"a new note", "a", []note.Note{port}, 1},
		{"the same note", "a", []note.Note{port}, 0},
		{"another note beside it", "a", []note.Note{port, full}, 1},
		{"another node", "b", []note.Note{port}, 1},
		{"no note", "a", nil, 0},
		{"a note that is back", "a", []note.Note{port}, 1},
	} {
		logged = 0
		if explain(ctx, c.node, c.notes); logged != c.want {
			t.Errorf("%s: %d lines, want %d", c.why, logged, c.want)
		}
	}
}

// What gates leave of probes, in the reconcilers, in admission and in the webhook of pods.
func TestProbeGates(t *testing.T) {
	for list, want := range map[string]struct{ out, off, serverless bool }{
		"":                                      {},
		"EnablePodProbeMarkerOnServerless=true": {serverless: true},
		"EnablePodProbeMarkerOnServerless=true,PodWebhook=false":         {},
		"EnablePodProbeMarkerOnServerless=true,PodProbeMarkerGate=false": {out: true, off: true},
		"PodProbeMarkerGate=false":                                       {out: true, off: true},
		"KruiseDaemon=false":                                             {out: true, off: true},
	} {
		g := gatesOf(t, list)
		o := options.Options{Gates: g}
		names, admitted, sent := chosen(o), admission(g), podScope(o)
		if out := slices.Contains(names, "-podprobemarker") && slices.Contains(names, "-nodepodprobe"); out != want.out ||
			admitted.PodProbeMarker.Off != want.off {
			t.Errorf("%s: left out %t, off %t", list, out, admitted.PodProbeMarker.Off)
		}
		if on := podProbeMarkers(g).Serverless; on != want.serverless || admitted.Pod.Probes.Serverless != on ||
			sent.Serverless != on {
			t.Errorf("%s: the reconciler %t, the step %t, the scope %t",
				list, on, admitted.Pod.Probes.Serverless, sent.Serverless)
		}
	}
}
