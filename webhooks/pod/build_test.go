package pod_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// shelf is what the webhook looks up, as a cache would have it.
type shelf struct {
	namespaces map[string]map[string]string
	revisions  []appsv1.ControllerRevision
	sets       []*appsv1beta1.SidecarSet
	// invalid says that the sets are stored so that their containers cannot be read.
	invalid bool
	// fault of every read.
	fault error
	reads int
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.reads++; s.fault != nil {
		return s.fault
	}
	switch o := into.(type) {
	case *metav1.PartialObjectMetadata:
		if labels, ok := s.namespaces[key.Name]; ok {
			o.Name, o.Labels = key.Name, labels
			return nil
		}
	case *unstructured.Unstructured:
		for _, set := range s.sets {
			if set.Name == key.Name {
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
				o.Object = content
				if err == nil && s.invalid {
					err = unstructured.SetNestedField(content, "no list", "spec", "containers")
				}
				return err
			}
		}
	case *appsv1.ControllerRevision:
		for i := range s.revisions {
			if s.revisions[i].Name == key.Name {
				s.revisions[i].DeepCopyInto(o)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *shelf) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	if s.reads++; s.fault != nil {
		return s.fault
	}
	list, ok := into.(*appsv1.ControllerRevisionList)
	if !ok {
		return errors.New("only revisions are listed")
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	for _, r := range s.revisions {
		if o.LabelSelector.Matches(labelSet(r.Labels)) {
			list.Items = append(list.Items, r)
		}
	}
	return nil
}

type labelSet map[string]string

func (l labelSet) Has(key string) bool              { _, ok := l[key]; return ok }
func (l labelSet) Get(key string) string            { return l[key] }
func (l labelSet) Lookup(key string) (string, bool) { v, ok := l[key]; return v, ok }

// newSet makes a set of a spec in YAML.
func newSet(t testing.TB, name, spec string) *appsv1beta1.SidecarSet {
	t.Helper()
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
	if err := yaml.UnmarshalStrict([]byte(spec), &set.Spec); err != nil {
		t.Fatal(err)
	}
	set.Status.LatestRevision = name + "-now"
	return set
}

func open(set *appsv1beta1.SidecarSet) *appsv1beta1.SidecarSet {
	set.Annotations = map[string]string{appsv1beta1.SidecarSetInjectionFailurePolicyAnnotation: "Ignore"}
	return set
}

func indexOf(sets ...*appsv1beta1.SidecarSet) *pod.Index {
	index := pod.NewIndex()
	for _, set := range sets {
		_ = index.Put(set)
	}
	return index
}

// over returns a webhook whose sidecars are looked up as given.
func over(l pod.SidecarLookups, o pod.Options) (*pod.Webhook, error) {
	sidecars, err := pod.Sidecars(l, o.Sidecars)
	if err != nil {
		return nil, err
	}
	return pod.New([]pod.Step{pod.Readiness(o.Readiness), sidecars, pod.Launch()}, o)
}

// hook is a webhook over sets and what is on a shelf.
func hook(t testing.TB, s *shelf, o pod.Options, sets ...*appsv1beta1.SidecarSet) *pod.Webhook {
	t.Helper()
	if s == nil {
		s = &shelf{}
	}
	o.Now = now
	w, err := over(pod.SidecarLookups{Sets: indexOf(sets...), Namespaces: s, Revisions: s}, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// request creates a pod that is written in YAML.
func request(t testing.TB, uid, text string) admission.Request {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: types.UID(uid), Operation: admissionv1.Create, Namespace: "one",
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
	}}
	r.Object.Raw = raw
	return r
}

// patched is the object of a request as the answer has it.
func patched(t testing.TB, req admission.Request, answer admission.Response) []byte {
	t.Helper()
	if !answer.Allowed {
		t.Fatalf("refused: %+v", answer.Result)
	}
	if len(answer.Patch) == 0 {
		return req.Object.Raw
	}
	p, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	applied, err := p.Apply(req.Object.Raw)
	if err != nil {
		t.Fatalf("%v: %s", err, answer.Patch)
	}
	return applied
}

func decode(t testing.TB, raw []byte) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := json.Unmarshal(raw, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// same wants a value to be as expected.
func same(t *testing.T, why string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}
