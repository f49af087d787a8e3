package process

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/controllers/nodepodprobe"
	"github.com/kruisekit/kruisekit/note"
)

// nodePodProbes are the options for the reconciler of NodePodProbes, whose notes are logged.
func nodePodProbes() nodepodprobe.Options {
	return nodepodprobe.Options{Explain: (&noteLog{last: map[string][]note.Note{}}).explain}
}

// noteLog logs the notes about a node when they change.
type noteLog struct {
	mu   sync.Mutex
	last map[string][]note.Note
}

func (l *noteLog) explain(ctx context.Context, node string, notes []note.Note) {
	l.mu.Lock()
	was := l.last[node]
	if len(notes) == 0 {
		delete(l.last, node)
	} else {
		l.last[node] = slices.Clone(notes)
	}
	l.mu.Unlock()
	for _, n := range notes {
		if !slices.Contains(was, n) {
			log.FromContext(ctx).Info("Probe left out", "node", node, "marker", n.Object, "code", n.Code, "reason", n.Text)
		}
	}
}
