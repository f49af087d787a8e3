package roundtrip

import (
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/api/kruise"
)

const (
	oldVersion = "v1alpha1"
	hubVersion = "v1beta1"
)

// Object is what a pointer to a kind can do.
type Object[T any] interface {
	*T
	runtime.Object
	metav1.Object
	metav1.ObjectMetaAccessor
}

// Up fills the empty hub with old. The two functions copy, each way, the fields that both versions have,
// metadata included; they may share memory between their arguments and cannot fail.
func Up[O, H any, PO Object[O], PH Object[H]](old PO, hub PH, up func(*O, *H), down func(*H, *O)) error {
	return convert(old, hub, pair[O, H]{from: oldVersion, to: hubVersion, there: up, back: down})
}

// Down fills the empty old with hub. The functions are those of Up.
func Down[O, H any, PO Object[O], PH Object[H]](hub PH, old PO, up func(*O, *H), down func(*H, *O)) error {
	return convert(hub, old, pair[H, O]{from: hubVersion, to: oldVersion, there: down, back: up})
}

// pair is a conversion in one direction.
type pair[S, D any] struct {
	from, to string
	there    func(*S, *D)
	back     func(*D, *S)
}

func convert[S, D any, PS Object[S], PD Object[D]](src PS, dst PD, p pair[S, D]) error {
	original := clone(src)
	kept := takeKept(original)
	gvk := dst.GetObjectKind().GroupVersionKind()
	p.there(clone(original), dst)
	if changes := kept[p.to]; len(changes) > 0 {
		restore(original, dst, p, changes)
	}
	dst.GetObjectKind().SetGroupVersionKind(gvk)
	delete(kept, p.to)
	delete(kept, p.from)

	lost, err := missing(original, dst, p)
	if err != nil {
		return fmt.Errorf("convert %s/%s from %s to %s: %w", src.GetNamespace(), src.GetName(), p.from, p.to, err)
	}
	if len(lost) > 0 {
		kept[p.from] = lost
	}
	return putKept(dst, kept)
}

// missing is what does not return when dst is converted back.
func missing[S, D any, PS Object[S], PD Object[D]](original PS, dst PD, p pair[S, D]) ([]change, error) {
	returned := PS(new(S))
	p.back(clone(dst), returned)
	returned.GetObjectKind().SetGroupVersionKind(original.GetObjectKind().GroupVersionKind())
	if apiequality.Semantic.DeepEqual(original, returned) {
		return nil, nil
	}
	was, err := content(returned)
	if err != nil {
		return nil, err
	}
	is, err := content(original)
	if err != nil {
		return nil, err
	}
	return diff("", was, is), nil
}

// maxTries bounds the work for an annotation that a client wrote by hand.
const maxTries = 16

// restore sets in dst what was kept for its version, as far as the version of src cannot hold it. A change that makes
// dst differ from what src shows is dropped: it is an edit of the annotation, or src was edited since.
func restore[S, D any, PS Object[S], PD Object[D]](src PS, dst PD, p pair[S, D], kept []change) {
	pending := [][]change{kept}
	for tries := 0; len(pending) > 0 && tries < maxTries; tries++ {
		changes := pending[0]
		pending = pending[1:]
		if restored, ok := with(dst, changes); ok && agrees(src, dst, restored, p) {
			*dst = *restored
		} else if half := len(changes) / 2; half > 0 {
			pending = append(pending, changes[:half], changes[half:])
		}
	}
}

// agrees reports whether restored, converted back, differs from src only where dst does, too.
func agrees[S, D any, PS Object[S], PD Object[D]](src PS, dst, restored PD, p pair[S, D]) bool {
	differs, err := missing(src, restored, p)
	if err != nil || len(differs) == 0 {
		return err == nil
	}
	before, err := missing(src, dst, p)
	return err == nil && within(differs, before)
}

// with is a copy of obj with the changes in it; not ok if these do not give a valid object. Of metadata only labels
// and annotations change.
func with[T any, P Object[T]](obj P, changes []change) (P, bool) {
	fields, err := content(obj)
	if err != nil {
		return nil, false
	}
	apply(fields, changes)
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, false
	}
	changed := P(new(T))
	if err := json.Unmarshal(data, changed); err != nil {
		return nil, false
	}
	from, ok := obj.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return nil, false
	}
	to, ok := changed.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return nil, false
	}
	labels, annotations := to.Labels, to.Annotations
	*to = *from
	to.Labels, to.Annotations = labels, annotations
	return changed, true
}

func clone[T any, P Object[T]](obj P) P {
	c, _ := obj.DeepCopyObject().(P) // a copy has the type of the original
	return c
}

// content is the part of an object that can be kept, as JSON knows it. Labels and annotations are always there,
// so that they are compared key by key.
func content(obj any) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	meta := map[string]any{"labels": map[string]any{}, "annotations": map[string]any{}}
	for key := range meta {
		if m, ok := child(fields["metadata"], key).(map[string]any); ok {
			meta[key] = m
		}
	}
	fields["metadata"] = meta
	delete(fields, "apiVersion")
	delete(fields, "kind")
	return fields, nil
}

// takeKept removes the annotation from obj and returns what it kept, by version.
func takeKept(obj metav1.Object) map[string][]change {
	data, ok := obj.GetAnnotations()[kruise.ConversionDataKey]
	if !ok {
		return map[string][]change{}
	}
	annotations := maps.Clone(obj.GetAnnotations())
	delete(annotations, kruise.ConversionDataKey)
	obj.SetAnnotations(annotations)
	kept := map[string][]change{}
	if err := json.Unmarshal([]byte(data), &kept); err != nil || kept == nil {
		return map[string][]change{}
	}
	return kept
}

// putKept writes what is kept, if anything, into the annotation of obj.
func putKept(obj metav1.Object, kept map[string][]change) error {
	if len(kept) == 0 {
		return nil
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode what the other version cannot hold: %w", err)
	}
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kruise.ConversionDataKey] = string(data)
	obj.SetAnnotations(annotations)
	return nil
}
