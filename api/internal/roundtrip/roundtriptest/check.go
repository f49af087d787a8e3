package roundtriptest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand"
	"path"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// Losses are the paths that only one of the versions can hold, as patterns of path.Match with list indices
// written as they are in the annotation. Anything else that travels in the annotation is a field that the
// conversion forgot.
type Losses struct {
	// Old holds what v1beta1 cannot.
	Old []string
	// Hub holds what v1alpha1 cannot.
	Hub []string
}

// Old is a kind in the older version.
type Old[O, H any] interface {
	roundtrip.Object[O]
	ConvertTo(*H) error
	ConvertFrom(*H) error
}

// Check converts many random objects there and back, starting from either version.
// The functions in fill make the values of some types likelier to be meaningful.
func Check[O, H any, PO Old[O, H], PH roundtrip.Object[H]](t *testing.T, losses Losses, fill ...any) {
	t.Helper()
	for seed := range int64(200) {
		filler := Filler(seed, fill...)
		old := PO(new(O))
		filler.Fill(old)
		normalise(t, old)
		there, back := new(H), PO(new(O))
		must(t, seed, old.ConvertTo(there))
		allowOnly(t, seed, Kept(t, PH(there).GetAnnotations(), "v1alpha1"), losses.Old)
		must(t, seed, back.ConvertFrom(there))
		same(t, seed, old, back)

		hub := PH(new(H))
		filler.Fill(hub)
		normalise(t, hub)
		down, up := PO(new(O)), new(H)
		must(t, seed, down.ConvertFrom(hub))
		allowOnly(t, seed, Kept(t, down.GetAnnotations(), "v1beta1"), losses.Hub)
		must(t, seed, down.ConvertTo(up))
		same(t, seed, hub, up)
		if seed%20 == 0 {
			held := shown(t, seed, old, nil)
			same(t, seed, held, shown(t, seed, held, hub))
		}
		if t.Failed() {
			return
		}
	}
}

// shown returns what v1alpha1 shows of a stored object, without what v1beta1 cannot hold. The client that stored the
// object forged the annotation, to keep the values of forge; nil for no annotation.
func shown[O, H any, PO Old[O, H]](t *testing.T, seed int64, old PO, forge any) PO {
	t.Helper()
	stored, before := new(H), new(H)
	must(t, seed, old.ConvertTo(before))
	request, _ := old.DeepCopyObject().(PO)
	if forge != nil {
		text, err := json.Marshal(map[string]any{"v1beta1": changes(t, before, forge)})
		must(t, seed, err)
		request.SetAnnotations(roundtrip.WithKey(old.GetAnnotations(), kruise.ConversionDataKey, string(text)))
	}
	must(t, seed, request.ConvertTo(stored))
	accessor, err := meta.Accessor(stored)
	must(t, seed, err)
	accessor.SetAnnotations(roundtrip.WithKey(accessor.GetAnnotations(), kruise.ConversionDataKey, ""))
	after := PO(new(O))
	must(t, seed, after.ConvertFrom(stored))
	after.SetAnnotations(roundtrip.WithKey(after.GetAnnotations(), kruise.ConversionDataKey, ""))
	return after
}

// changes replace each field of spec and status of one object by that of another, and add a label. null is as good as
// absent.
func changes(t *testing.T, was, is any) []any {
	t.Helper()
	all := []any{map[string]string{"path": "/metadata/labels/forged", "is": "true"}}
	before, after := fields(t, was), fields(t, is)
	for _, part := range []string{"spec", "status"} {
		from, _ := before[part].(map[string]any)
		to, _ := after[part].(map[string]any)
		for key, value := range to {
			if text, err := json.Marshal(value); err != nil || bytes.Contains(text, []byte("null")) {
				continue
			}
			change := map[string]any{"path": "/" + part + "/" + key, "is": value}
			if from[key] != nil {
				text, err := json.Marshal(from[key])
				must(t, 0, err)
				sum := sha256.Sum256(text)
				change["was"] = hex.EncodeToString(sum[:8])
			}
			all = append(all, change)
		}
	}
	return all
}

func fields(t *testing.T, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, 0, err)
	var fields map[string]any
	must(t, 0, utiljson.Unmarshal(text, &fields))
	return fields
}

// Filler fills objects at random, always the same for one seed.
func Filler(seed int64, fill ...any) *randfill.Filler {
	funcs := append([]any{
		func(x *intstr.IntOrString, c randfill.Continue) {
			*x = intstr.FromInt32(c.Int31n(200))
			if c.Bool() {
				*x = intstr.FromString(intstr.FromInt32(c.Int31n(101)).StrVal + "25%")
			}
		},
		// A template is copied as a whole; a few fields show as much as all of them.
		func(x *corev1.PodTemplateSpec, c randfill.Continue) {
			x.Labels = map[string]string{"app": c.String(5)}
			x.Spec.Containers = []corev1.Container{{Name: c.String(5), Image: c.String(9)}}
		},
		func(x *corev1.PersistentVolumeClaim, c randfill.Continue) { x.Name = c.String(5) },
		func(x *runtime.RawExtension, c randfill.Continue) {
			x.Raw, _ = json.Marshal(map[string]string{"kind": c.String(5)})
		},
	}, fill...)
	return randfill.NewWithSeed(seed).NilChance(.4).NumElements(0, 3).MaxDepth(14).
		SkipFieldsWithPattern(regexp.MustCompile("^(TypeMeta|ManagedFields|OwnerReferences)$")).
		RandSource(rand.NewSource(seed)).Funcs(funcs...)
}

// normalise drops what JSON cannot hold, as the API server does.
func normalise[T any, P roundtrip.Object[T]](t *testing.T, obj P) {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatalf("encode %T: %v", obj, err)
	}
	fresh := new(T)
	if err := json.Unmarshal(data, fresh); err != nil {
		t.Fatalf("decode %T: %v", obj, err)
	}
	*obj = *fresh
}

func must(t *testing.T, seed int64, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

func same(t *testing.T, seed int64, want, got any) {
	t.Helper()
	if !apiequality.Semantic.DeepEqual(want, got) {
		t.Errorf("seed %d: %T did not return (-want +got):\n%s", seed, want, cmp.Diff(want, got))
	}
}

func allowOnly(t *testing.T, seed int64, kept, allowed []string) {
	t.Helper()
	for _, p := range kept {
		if !matchesAny(p, allowed) {
			t.Errorf("seed %d: %s travels in the annotation, though both versions have it", seed, p)
		}
	}
}

// Kept lists the paths that an object keeps for a version.
func Kept(t *testing.T, annotations map[string]string, version string) []string {
	t.Helper()
	text, ok := annotations[kruise.ConversionDataKey]
	if !ok {
		return nil
	}
	kept := map[string][]node{}
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		t.Fatalf("decode %s: %v", kruise.ConversionDataKey, err)
	}
	return paths("", kept[version])
}

type node struct {
	Path string `json:"path"`
	In   []node `json:"in"`
}

func paths(prefix string, nodes []node) []string {
	var all []string
	for _, n := range nodes {
		if len(n.In) == 0 {
			all = append(all, prefix+n.Path)
			continue
		}
		all = append(all, paths(prefix+n.Path, n.In)...)
	}
	return all
}

func matchesAny(p string, patterns []string) bool {
	for _, pattern := range patterns {
		if ok, _ := path.Match(pattern, p); ok {
			return true
		}
	}
	return false
}
