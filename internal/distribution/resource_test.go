package distribution_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

// Resources that store the same have the same digest, however they are written.
func TestDigest(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"stringData is data": {
			plain, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"Opaque","data":{"user":"cmVhZGVy"}}`,
			true,
		},
		"stringData wins": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"data":{"user":"eA=="},"stringData":{"user":"reader"}}`,
			true,
		},
		"a namespace": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","namespace":"a","uid":"x","resourceVersion":"1"},"stringData":{"user":"reader"}}`,
			true,
		},
		"empty maps": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{}},"data":{},"immutable":false}`, true,
		},
		"the order of keys": {
			plain, `{"stringData":{"user":"reader"},"kind":"Secret","metadata":{"name":"pull"},"apiVersion":"v1"}`, true,
		},
		"own annotations": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","annotations":{"` +
				v1beta1.ResourceDistributionHashAnnotation + `":"x"}},"stringData":{"user":"reader"}}`,
			true,
		},
		"other data": {
			plain, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"writer"}}`, false,
		},
		"a label": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"a":"b"}},"stringData":{"user":"reader"}}`,
			false,
		},
		"another type": {
			plain, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"x/y","stringData":{"user":"reader"}}`,
			false,
		},
		"immutable": {
			plain,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"immutable":true,"stringData":{"user":"reader"}}`,
			false,
		},
		"binary is not text": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"x"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"a":"eA=="}}`, false,
		},
		"keys are cased": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"x"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"Data":{"a":"x"}}`, false,
		},
		"the kind is a content": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`, false,
		},
	} {
		a, b := read(t, c.a), read(t, c.b)
		if (a.Digest == b.Digest) != c.same {
			t.Errorf("%s: the digests are the same: %t", name, !c.same)
		}
		if want := fmt.Sprintf("%x", sha256.Sum256([]byte(c.b))); b.Hash != want {
			t.Errorf("%s: the hash is %s, want that of the raw bytes", name, b.Hash)
		}
	}
}

// What is no Secret or ConfigMap is an error, and a kind is named.
func TestReadFails(t *testing.T) {
	for raw, kind := range map[string]string{
		``:     "-",
		`null`: "",
		`7`:    "-",
		`{`:    "-",
		`{}`:   "",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`: "Deployment",
		`{"apiVersion":"v2","kind":"Secret"}`:                                  "Secret",
		`{"apiVersion":"v1","kind":"secret"}`:                                  "secret",
		`{"apiVersion":"v1","kind":"Pod"}`:                                     "Pod",
		`{"apiVersion":"v1","kind":"Secret","data":{"a":"no base64!"}}`:        "-",
		`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":7}}`:                "-",
	} {
		_, err := distribution.Read([]byte(raw))
		var is *distribution.KindError
		if err == nil || errors.As(err, &is) != (kind != "-") || is != nil && is.Kind != kind {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// An update makes of any object that the owner controls a copy, and keeps what others have added.
func TestUpdateKeeps(t *testing.T) {
	r := read(t,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"team":"web"},"annotations":{"note":"new"},"finalizers":["b/b"]},"data":{"user":"eA=="}}`)
	s := newSecrets()
	s.put("shop", func(o *corev1.Secret) {
		o.Labels = map[string]string{"team": "db", "theirs": "1", "former": "2"}
		o.Annotations = map[string]string{
			"theirs": "1", "former": "2", distribution.KeysAnnotation: `{"labels":["team","former"],"annotations":["former"]}`,
		}
		o.Finalizers = []string{"a/a", "b/b"}
		o.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "uid-theirs"},
			{
				APIVersion:         "apps.kruise.io/v1alpha1",
				Kind:               distribution.Kind,
				Name:               me.Name,
				UID:                me.UID,
				Controller:         ptr.To(true),
				BlockOwnerDeletion: ptr.To(true),
			},
		}
		o.Data = map[string][]byte{"other": []byte("y")}
		o.StringData = nil
	})
	p := distribution.Plan(distribution.Input{
		Owner:      me,
		Resource:   r,
		Targets:    selected(t, v1beta1.ResourceDistributionTargets{AllNamespaces: true}),
		Namespaces: []distribution.Namespace{{Name: "shop"}},
		Copies:     s.copies(me),
		Now:        at(0),
	})
	s.run(p, r, me)
	is := s.all["shop"]
	want := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "pull", UID: is.UID, ResourceVersion: is.ResourceVersion,
		Labels: map[string]string{"team": "web", "theirs": "1"},
		Annotations: map[string]string{
			"theirs": "1", "note": "new", distribution.KeysAnnotation: `{"labels":["team"],"annotations":["note"]}`,
			v1beta1.ResourceDistributionHashAnnotation: r.Hash, v1beta1.ResourceDistributionFromAnnotation: me.Name,
		},
		Finalizers: []string{"a/a", "b/b"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "uid-theirs"},
			{
				APIVersion:         "apps.kruise.io/v1beta1",
				Kind:               distribution.Kind,
				Name:               me.Name,
				UID:                me.UID,
				Controller:         ptr.To(true),
				BlockOwnerDeletion: ptr.To(true),
			},
		},
	}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"user": []byte("x")}}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	if want := map[string]int{"Inspect": 1, "Update": 1}; !maps.Equal(want, s.requests) {
		t.Errorf("requests %v", s.requests)
	}
}

// The resource without labels has no trace of its own on a copy: the copy is that of the reference.
func TestCopyIsThatOfTheReference(t *testing.T) {
	r := read(t,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"elsewhere"},"data":{"k":"v"},"binaryData":{"b":"eA=="}}`)
	var got map[string]any
	if err := json.Unmarshal([]byte(encode(t, r.Copy("shop", me))), &got); err != nil {
		t.Fatal(err)
	}
	meta, _ := got["metadata"].(map[string]any)
	delete(meta, "creationTimestamp")
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"}, "binaryData": map[string]any{"b": "eA=="},
		"metadata": map[string]any{
			"namespace": "shop", "name": "a",
			"annotations": map[string]any{
				"kruise.io/resourcedistribution.resource.hashcode": r.Hash,
				"kruise.io/resourcedistribution.resource.from":     "registry",
			},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "name": "registry", "uid": "uid-registry",
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
}

// The UID decides who controls an object; kind and name do without one.
func TestControls(t *testing.T) {
	for name, c := range map[string]struct {
		ref  metav1.OwnerReference
		want bool
	}{
		"ours": {
			metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: distribution.Kind, Name: me.Name, UID: me.UID},
			true,
		},
		"of an older client": {
			metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: distribution.Kind, Name: me.Name, UID: me.UID},
			true,
		},
		"without a UID": {
			metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: distribution.Kind, Name: me.Name}, true,
		},
		"another UID": {
			metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: distribution.Kind, Name: me.Name, UID: "former"},
			false,
		},
		"another name": {
			metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: distribution.Kind, Name: "other"}, false,
		},
		"another kind": {
			metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: me.Name}, false,
		},
		"another group": {metav1.OwnerReference{APIVersion: "v1", Kind: distribution.Kind, Name: me.Name}, false},
		"no group":      {metav1.OwnerReference{APIVersion: "a/b/c", Kind: distribution.Kind, Name: me.Name}, false},
	} {
		o := &corev1.Secret{}
		o.OwnerReferences = []metav1.OwnerReference{c.ref}
		if me.Controls(o) {
			t.Errorf("%s: an owner that is no controller controls", name)
		}
		o.OwnerReferences[0].Controller = ptr.To(true)
		if got := me.Controls(o); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
