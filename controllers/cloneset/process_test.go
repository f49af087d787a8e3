package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// process is the process of the reconciler that lives, and the writes of all processes.
type process struct {
	dead   bool
	deaths int
	// dies is the write at which the process dies, before the server applies the write or after.
	dies struct {
		at    string
		after bool
	}
	// doomed means that the process dies at a write by chance.
	doomed bool
	faults *podbench.Chance
	asked  map[string]int
	// writes of all processes; first are those that were the first of a pass.
	writes []write
	first  bool
}

// write is a request to the API server.
type write struct {
	// name is the verb, the object and the number of the request of these.
	name  string
	first bool
	// kind is what the request did, without names and numbers.
	kind string
}

var numbers = regexp.MustCompile(`[0-9]+`)

var errDead = errors.New("the process is dead")

// start starts another process, which has no memory, and reads everything as it is.
func (w *world) start() {
	w.Helper()
	w.seen, w.process.dead, w.process.doomed = nil, false, false
	w.cache = w.server.Lagging()
	r, err := cloneset.New(podbench.Writes(w.cache, w.write), cloneset.Options{
		Live: w.server, Now: w.now, NewID: w.newID, PartitionRollback: true,
		Installed: &inplace.Installation{EnvDaemon: w.daemon},
		Explain:   func(_ context.Context, _ types.NamespacedName, notes []note.Note) { w.tale.notes = notes },
	})
	if err != nil {
		w.Fatal(err)
	}
	w.reconciler = r
}

// newID returns ids in the order of creations: a, b, ... z, ba, bb ...
func (w *world) newID() string {
	id := letters(w.ids)
	w.ids++
	return id
}

func letters(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return letters(n/26) + letters(n%26)
}

// view returns what the server holds.
func (w *world) view() *view {
	held := *w.live
	held.server = w.server.Snapshot()
	held.version, held.pods, held.revisions = held.server.Version(), maps.Clone(held.pods), maps.Clone(held.revisions)
	return &held
}

// refresh brings the cache of the process closer to what the server holds, and reports whether it shows something new.
func (w *world) refresh() bool {
	switch {
	case w.seen == nil, w.lag == 0 && w.seen.version != w.server.Version():
		w.seen = w.view()
		return true
	case w.lag == 0:
		return false
	}
	for _, s := range w.history {
		if s.version > w.seen.version && w.random.IntN(w.lag) == 0 {
			w.seen = s
			return true
		}
	}
	return false
}

// begin begins a pass.
func (w *world) begin() {
	w.cache.View = w.seen.server
	w.process.first = true
	w.rules.reads(w.seen)
}

// write makes a write of the process, unless the process dies before. The reconciler makes several writes at the same
// time.
func (w *world) write(what string, do func() error) error {
	w.mu.Lock()
	p := &w.process
	if p.asked == nil {
		p.asked = map[string]int{}
	}
	if p.dead {
		w.mu.Unlock()
		return errDead
	}
	p.asked[what]++
	name := fmt.Sprintf("%s#%d", what, p.asked[what])
	dies := name == p.dies.at || p.doomed && p.faults.Draw(what, 3) == 0
	_, object, _ := strings.Cut(what, "/")
	before, told := w.live.pods[object], len(w.tale.lines)
	if dies && !p.dies.after {
		p.dead = true
		w.mu.Unlock()
		return errDead
	}
	w.mu.Unlock()
	err := p.faults.Do(what, do)
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := strings.TrimSuffix(what, object)
	for _, l := range w.tale.lines[min(told, len(w.tale.lines)):] {
		if l.object == object {
			kind += " " + l.says
		}
	}
	p.writes = append(p.writes, write{name: name, first: p.first, kind: numbers.ReplaceAllString(kind, "n")})
	p.first = false
	if before != nil {
		w.rules.count(before, w.live.pods[object])
	}
	if dies {
		p.dead = true
		return errDead
	}
	return err
}

// each returns the pods in the order of their names.
func (v *view) each() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(v.pods)) {
		pods = append(pods, v.pods[name])
	}
	return pods
}
