package protection_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/protection"
)

// refused is the table of the specification, row by row, without regard to cost.
func (o object) refused(k protection.Kind) bool {
	gc := o.user == protection.GarbageCollectors()[0] || o.user == protection.GarbageCollectors()[1]
	pods, claims, crs := o.counts[protection.Pods].N > 0, o.counts[protection.Claims].N > 0,
		o.counts[protection.Instances].N > 0
	switch {
	case o.policy.Disabled, o.terminating, o.dying && !o.unknown && !o.policy.HoldNamespaces:
		return false
	case len(o.policy.ExemptUsers) > 0 && o.user == o.policy.ExemptUsers[0]:
		return false
	case gc && strings.HasPrefix(o.owner, "apps/"):
		return false
	case o.label == "Always":
		return true
	case o.label != "Cascading":
		return false
	}
	switch k.Kind {
	case "Service", "Ingress":
		return false
	case "Namespace":
		return o.failing == protection.Pods || pods || o.failing == protection.Claims || claims
	case "CustomResourceDefinition":
		return !o.policy.CountInstances || o.failing == protection.Instances || crs
	}
	return o.replicas != nil && *o.replicas > 0
}

// Decide agrees with a second implementation on objects drawn at random, and each refusal has the text that clients
// match.
func TestDecideAgreesWithOracle(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	kinds, refusals := protection.Kinds(), 0
	for range 20000 {
		k := kinds[r.IntN(len(kinds))]
		o := object{
			kind:        k.Group + "/" + k.Kind,
			label:       pick("Always", "Cascading", "Cascading", "always", "", "-"),
			terminating: r.IntN(8) == 0,
			owner:       pick("", "apps/v1", "apps/v1beta1", "example.com/v1", "v1"),
			failing:     protection.Dependents(pick("", "", "Pods", "Claims", "Instances")),
			user:        pick("root", "tenant", protection.GarbageCollectors()[0], protection.GarbageCollectors()[1]),
			policy: protection.Policy{
				Disabled:       r.IntN(8) == 0,
				CountInstances: r.IntN(2) == 0,
				ExemptUsers:    []string{"root"},
				HoldNamespaces: r.IntN(2) == 0,
			},
			dying:   r.IntN(8) == 0,
			unknown: r.IntN(8) == 0,
			counts:  map[protection.Dependents]protection.Count{},
		}
		for _, d := range []protection.Dependents{protection.Pods, protection.Claims, protection.Instances} {
			o.counts[d] = protection.Count{N: r.Int64N(3), AtLeast: r.IntN(2) == 0}
		}
		if r.IntN(3) > 0 {
			o.replicas = ptr.To(r.Int32N(5) - 2)
		}
		v, _ := o.decide(t)
		if want := o.refused(k); v.Refused() != want {
			t.Fatalf("seed %d: %+v: got %+v, want refused: %t", seed, o, v, want)
		}
		if v.Refused() {
			refusals++
		}
		if text := fmt.Sprintf("forbidden by ResourcesProtectionDeletion for %s=%s",
			key, o.label); v.Refused() != strings.Contains(v.Message, text) {
			t.Fatalf("seed %d: %+v: message %q", seed, o, v.Message)
		}
	}
	if refusals < 1000 {
		t.Errorf("seed %d: only %d refusals: the draw shows little", seed, refusals)
	}
}
