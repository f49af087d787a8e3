package revision_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/revision"
)

// atServer is the oracle: a quantity as the API server stores it, in thousandths, rounded away from zero.
func atServer(t *testing.T, text string) *big.Int {
	t.Helper()
	factors := map[string]*big.Rat{
		"n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1e3), "k": big.NewRat(1e3, 1),
		"M":  big.NewRat(1e6, 1),
		"Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "": big.NewRat(1, 1),
	}
	number := strings.TrimRight(text, "numkMKi")
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		t.Fatalf("%q is no number", number)
	}
	value.Mul(value, factors[text[len(number):]])
	value.Mul(value, big.NewRat(1000, 1))
	thousandths, rest := new(big.Int).QuoRem(value.Num(), value.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		thousandths.Add(thousandths, big.NewInt(1))
	}
	return thousandths
}

// randomAmount draws amounts of which some differ by less than a thousandth.
func randomAmount(random *rand.Rand) string {
	whole := []int{0, 1, 2, 62, 63, 100}[random.IntN(6)]
	fraction := []string{"", ".5", ".50", ".4999", ".0001", ".000001", ".9"}[random.IntN(7)]
	unit := []string{"", "m", "m", "m", "u", "n", "k", "Ki", "M", "Mi"}[random.IntN(10)]
	if random.IntN(8) == 0 {
		return fmt.Sprintf("%d%s", whole*1000+500, []string{"u", "n", "m"}[random.IntN(3)])
	}
	return fmt.Sprintf("%d%s%s", whole, fraction, unit)
}

func sized(list corev1.ResourceList) map[string]*corev1.PodTemplateSpec {
	resources := corev1.ResourceRequirements{Requests: list}
	claim := corev1.VolumeResourceRequirements{Requests: list}
	specs := map[string]corev1.PodSpec{
		"request": {Containers: []corev1.Container{{Name: "c", Resources: resources}}},
		"limit": {
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: list}}},
		},
		"init container": {InitContainers: []corev1.Container{{Name: "c", Resources: resources}}},
		"overhead":       {Overhead: list},
		"pod":            {Resources: &resources},
		"claim": {
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
					Spec: corev1.PersistentVolumeClaimSpec{Resources: claim},
				},
			}}}},
		},
	}
	all := map[string]*corev1.PodTemplateSpec{}
	for name, spec := range specs {
		all[name] = (&corev1.PodTemplateSpec{Spec: spec}).DeepCopy()
	}
	return all
}

// Templates are the same where the API server stores the same amounts, for every list of resources that it rounds.
func TestSameAmounts(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		x, y := randomAmount(random), randomAmount(random)
		name := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/gpu"}[random.IntN(3)]
		want := atServer(t, x).Cmp(atServer(t, y)) == 0
		as, bs := sized(corev1.ResourceList{name: resource.MustParse(x)}),
			sized(corev1.ResourceList{name: resource.MustParse(y)})
		for where, a := range as {
			before := mustJSON(t, a)
			if got := revision.Same(a, bs[where]); got != want {
				t.Fatalf("seed %d: %s of %s: %s and %s: want same %v, got %v", seed, name, where, x, y, want, got)
			}
			if mustJSON(t, a) != before {
				t.Fatalf("seed %d: the template was changed", seed)
			}
		}
	}
}

// A template with 62.5m uses the revision that the reference stored, with 63m.
func TestResolveRoundedAmount(t *testing.T) {
	unchanged := sized(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("62.5m")})["request"]
	reference := sized(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("63m")})["request"]
	data, err := revision.Encode(reference)
	if err != nil {
		t.Fatal(err)
	}
	have := []*appsv1.ControllerRevision{stored("web-1", 1, data)}
	wanted, err := revision.Encode(unchanged)
	if err != nil {
		t.Fatal(err)
	}
	if r := revision.Resolve(revision.Input{
		Owner: "web", Data: wanted, Have: have, Current: "web-1",
	}); r.Verdict != revision.Use || r.Name != "web-1" {
		t.Errorf("%s %s", r.Verdict, r.Name)
	}
}
