package nodeimage

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
)

// What other nodes may ask for, too, is remembered.
func TestRemember(t *testing.T) {
	name := types.NamespacedName{Name: "a"}
	job, secret, node := jobIdentity(name, "uid"), identity{kind: secretKind, name: name}, identity{nodeKind, name, ""}
	for why, c := range map[string]struct {
		id         identity
		gone, want bool
	}{
		"a job":                            {job, false, true},
		"a job that is gone":               {job, true, true},
		"a secret":                         {secret, false, true},
		"a secret may be created again":    {secret, true, false},
		"no other node asks for a node":    {node, false, false},
		"nor for one that is gone already": {node, true, false},
	} {
		r := &Reconciler{facts: cache.NewLRUExpireCache(maxFacts)}
		r.remember(&plan{snapshot: &snapshot{}, learned: map[identity]bool{c.id: c.gone}})
		if gone, known := r.recall(c.id); known != c.want || known && gone != c.gone {
			t.Errorf("%s: known %t, gone %t", why, known, gone)
		}
	}
}
