package resourcedistribution_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// world is a distribution of which an admin, tenants and faults do something at random at each turn.
type world struct {
	*model

	rand   *rand.Rand
	chance *podbench.Chance
	// seen is what the cache shows of copies; nil for what is there.
	seen *metav1.PartialObjectMetadataList
	// foreign are the data of objects that no distribution may change, by namespace.
	foreign map[string]string
	// cache of the process, and what that of the next one shows of the distribution at first.
	cache   *apiserver.Lagging
	earlier *apiserver.Server
	// began is the generation of the distribution when the process started.
	began int64
	// knows means that the process has written the status, and knows the distribution as the answer showed it.
	knows bool
}

// reboot starts another process, whose cache may show an older distribution for a while.
func (w *world) reboot() {
	d := &distributor{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	w.look(d)
	w.cache, w.began, w.knows = w.Behind(w.earlier), d.Generation, false
	if w.rand.IntN(2) == 0 {
		w.cache.Thaw()
	}
	w.restart(func(client.WithWatch) client.WithWatch { return w.faults(w.cache) })
}

// faults are a client whose requests fail at random, and whose cache of copies lags.
func (w *world) faults(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(podbench.Writes(c, w.chance.Do), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			metadata, is := list.(*metav1.PartialObjectMetadataList)
			if !is || metadata.Kind != "SecretList" {
				return c.List(ctx, list, opts...)
			}
			if w.seen == nil || w.chance.Of == 0 || w.chance.Draw("list", 2) == 0 {
				w.seen = &metav1.PartialObjectMetadataList{TypeMeta: metadata.TypeMeta}
				if err := c.List(ctx, w.seen, opts...); err != nil {
					return err
				}
			}
			w.seen.DeepCopyInto(metadata)
			return nil
		},
	})
}

const namespaces = 6

func (w *world) act() {
	n := fmt.Sprint("ns-", w.rand.IntN(namespaces))
	switch is := w.secret(n); w.rand.IntN(11) {
	case 0, 1:
		w.distribute("registry", fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"v%d":"x"}},"type":"a/%d","immutable":%t,`+
				`"stringData":{"user":"%d"}}`,
			w.rand.IntN(3), w.rand.IntN(2), w.rand.IntN(3) == 0, w.rand.IntN(3)), `"allNamespaces":true`)
	case 2:
		w.distribute("registry", plain, fmt.Sprintf(
			`"includedNamespaces":{"list":[{"name":"absent"},{"name":"%s"}]},"namespaceSelector":{"matchLabels":{"team":"%d"}}`,
			n, w.rand.IntN(2)))
	case 3:
		w.namespace(n, map[string]string{"team": fmt.Sprint(w.rand.IntN(2))})
	case 4:
		if is != nil {
			w.remove(n)
			delete(w.foreign, n)
		}
	case 5:
		if is == nil {
			w.put(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "pull"}, Data: map[string][]byte{"user": []byte("foreign")},
			})
			w.foreign[n] = "foreign"
		}
	case 6:
		if is != nil && w.foreign[n] == "" {
			w.edit(n, func(s *corev1.Secret) { s.Data = map[string][]byte{"user": []byte("drift")} })
		}
	case 7:
		if is != nil && w.foreign[n] == "" {
			w.edit(n, func(s *corev1.Secret) { s.OwnerReferences = nil })
			w.foreign[n] = string(w.secret(n).Data["user"])
		}
	case 8:
		w.reboot()
	case 9:
		w.earlier = w.Server.Snapshot()
	case 10:
		w.cache.Thaw()
	}
}

// check holds after each turn.
func (w *world) check() {
	w.Helper()
	for n, want := range w.foreign {
		if s := w.secret(n); s == nil || string(s.Data["user"]) != want || len(s.OwnerReferences) > 0 {
			w.Fatalf("the foreign object in %s is now %+v", n, s)
		}
	}
}

// copies returns the UIDs of the copies in targets, by namespace.
func (w *world) copies() map[string]types.UID {
	w.Helper()
	d := &distributor{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	w.look(d)
	all := map[string]types.UID{}
	for i := range namespaces {
		n := fmt.Sprint("ns-", i)
		if s := w.secret(n); s != nil && d.Spec.Targets.AllNamespaces {
			all[n] = s.UID
		}
	}
	return all
}

// keeps expects the copies of before where the distribution that the process sees is older than the stored one was when
// the process started.
func (w *world) keeps(before map[string]types.UID) {
	w.Helper()
	older := &distributor{}
	if err := w.cache.Get(w.Context(), types.NamespacedName{Name: "registry"}, older); err != nil {
		w.Fatal(err)
	}
	behind := !w.knows && older.Generation < w.began
	for _, request := range w.requests() {
		w.knows = w.knows || strings.Contains(request, " status ")
	}
	for n, uid := range before {
		if s := w.secret(n); behind && (s == nil || s.UID != uid) {
			w.Fatalf("the copy in %s, which is a target, is deleted", n)
		}
	}
}

// Whatever others do and whichever requests fail, objects of other owners stay as they are at each turn, and once the
// faults end each target has its copy, and the next pass sends nothing.
func TestRandom(t *testing.T) {
	start := uint64(time.Now().UnixNano())
	for seed := start; seed < start+8; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := &world{model: newModel(t), rand: rand.New(rand.NewPCG(seed, 1)), foreign: map[string]string{}}
			w.chance = &podbench.Chance{Seed: seed, Of: 12}
			for i := range namespaces {
				w.namespace(fmt.Sprint("ns-", i), nil)
			}
			w.distribute("registry", plain, `"allNamespaces":true`)
			w.options.Live = w.Server
			w.reboot()
			for range 60 {
				w.act()
				kept := w.copies()
				_, _ = w.turn("registry")
				w.check()
				w.keeps(kept)
				w.Advance(time.Second)
			}
			w.chance.Of = 0
			w.cache.Thaw()
			w.Advance(2 * time.Minute)
			for range 3 {
				w.must("registry")
			}
			w.check()
			w.settled()
			w.requests()
			w.must("registry")
			if all := w.requests(); len(all) > 0 {
				t.Errorf("an idle pass sends %q", all)
			}
		})
	}
}

// settled compares the copies with the spec.
func (w *world) settled() {
	w.Helper()
	d := &distributor{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	w.look(d)
	raw := string(d.Spec.Resource.Raw)
	good := 0
	for i := range namespaces {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("ns-", i)}}
		w.look(n)
		target := d.Spec.Targets.AllNamespaces ||
			n.Labels["team"] != "" && n.Labels["team"] == d.Spec.Targets.NamespaceSelector.MatchLabels["team"]
		for _, listed := range d.Spec.Targets.IncludedNamespaces.List {
			target = target || listed.Name == n.Name
		}
		s := w.secret(n.Name)
		switch {
		case w.foreign[n.Name] != "":
		case !target && s != nil:
			w.Errorf("%s has a copy", n.Name)
		case target && (s == nil || !strings.Contains(raw, fmt.Sprintf(`"user":"%s"`, s.Data["user"])) || len(s.Labels) > 1):
			w.Errorf("%s has %+v of %s", n.Name, s, raw)
		case target:
			good++
		}
	}
	if int(d.Status.Succeeded) != good || d.Status.ObservedGeneration != d.Generation {
		w.Errorf("%d have a copy: %s", good, w.picture("registry"))
	}
}
