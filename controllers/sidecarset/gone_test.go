package sidecarset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
)

// readings is an API server that counts the live reads of each object.
type readings struct {
	client.Reader

	mu    sync.Mutex
	names map[string]int
}

func (r *readings) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	r.mu.Lock()
	r.names[key.Name]++
	r.mu.Unlock()
	return r.Reader.Get(ctx, key, into, o...)
}

// stateOf is the record of updates by sets that do not exist.
func stateOf(names ...string) map[string]string {
	all := map[string]any{}
	for _, name := range names {
		all[name] = map[string]any{"revision": "x"}
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return map[string]string{kruise.SidecarSetInPlaceUpdateStateKey: string(data)}
}

// TestRecordsOfManySets: the owner of a pod writes its annotations. An update reads few of the sets that they name.
func TestRecordsOfManySets(t *testing.T) {
	live := &readings{names: map[string]int{}}
	m := newModel(t, sidecarset.Options{Live: live}, nil)
	live.Reader = m.Server
	set := m.create("mesh", maxUnavailable("100%"))
	m.fleet(2, set)
	m.counted(set, 2, 2, 2, 2)
	for pod := range 2 {
		var names []string
		for i := range 1000 {
			names = append(names, fmt.Sprintf("n%d-%d", pod, i))
		}
		m.annotate(fmt.Sprintf("pod-%d", pod), stateOf(names...))
	}
	clear(live.names)
	m.change(set, image("mesh:2"))
	m.counted(set, 2, 2, 2, 2)
	m.runs("mesh=mesh:2", "mesh=mesh:2")
	if len(live.names) > 16 {
		t.Errorf("%d sets were read past the cache", len(live.names))
	}
}

// TestGoneSetsAreRead: what a pod records of a set that is gone is removed, and one set is read once for all sets that
// remove it.
func TestGoneSetsAreRead(t *testing.T) {
	live := &readings{names: map[string]int{}}
	m := newModel(t, sidecarset.Options{Live: live}, nil)
	live.Reader = m.Server
	var sets []*v1beta1.SidecarSet
	for _, name := range []string{"mesh", "logs"} {
		sets = append(sets, m.create(name))
		m.pod("of-"+name, sets[len(sets)-1:])
		m.counted(sets[len(sets)-1], 1, 1, 1, 1)
		m.annotate("of-"+name, stateOf("former"))
	}
	for i, name := range []string{"mesh", "logs"} {
		m.change(sets[i], image(name+":2"))
		m.counted(sets[i], 1, 1, 1, 1)
		states := map[string]any{}
		if err := json.Unmarshal([]byte(m.annotations("of-" + name)[kruise.SidecarSetInPlaceUpdateStateKey]),
			&states); err != nil {
			t.Fatal(err)
		}
		if _, still := states["former"]; still || len(states) != 1 {
			t.Errorf("%s: %v", name, states)
		}
	}
	if n := live.names["former"]; n != 1 {
		t.Errorf("the set was read %d times", n)
	}
}
