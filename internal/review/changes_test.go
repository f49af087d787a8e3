package review_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/write"
)

type request = appsv1beta1.ContainerRecreateRequest

// hooked changes a request in every way that there is: in maps, in lists, in objects that are there or not.
func hooked(r *request) {
	r.Labels = map[string]string{"a/b~c": "ours"}
	r.Default()
	for i := range r.Spec.Containers {
		r.Spec.Containers[i].StatusContext = &appsv1beta1.ContainerRecreateRequestContainerContext{ContainerID: "x"}
	}
}

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		why, sent string
		change    func(*request)
		want      string
	}{
		"nothing changed": {
			"there is nothing to send", `{"spec":{"podName":"p","unknown":1}}`, func(*request) {}, `null`,
		},
		"nothing there": {
			"what is missing comes whole", `{"metadata":{"name":"r"},"spec":{"podName":"p"}}`, hooked,
			`[{"op":"add","path":"/metadata/labels","value":{"a/b~c":"ours"}},{"op":"add","path":"/spec/strategy","value":{"failurePolicy":"Fail"}}]`,
		},
		"something there": {
			"only what changed is sent", `{"metadata":{"labels":{"x":"y"}},"spec":{"strategy":{"forceRecreate":true}}}`, hooked,
			`[{"op":"add","path":"/metadata/labels/a~1b~0c","value":"ours"},{"op":"add","path":"/spec/strategy/failurePolicy","value":"Fail"}]`,
		},
		"a value of the user": {
			"it is replaced: whoever calls has decided so", `{"metadata":{"labels":{"a/b~c":"theirs"}},"spec":{"strategy":{"failurePolicy":"Fail"}}}`, hooked,
			`[{"op":"add","path":"/metadata/labels/a~1b~0c","value":"ours"}]`,
		},
		"null and empty": {
			"they are as good as nothing", `{"metadata":{"labels":null},"spec":{"strategy":{"failurePolicy":""}}}`, hooked,
			`[{"op":"add","path":"/metadata/labels","value":{"a/b~c":"ours"}},{"op":"add","path":"/spec/strategy/failurePolicy","value":"Fail"}]`,
		},
		"a list": {
			"element by element, so that unknown fields stay", `{"metadata":{"labels":{"a/b~c":"ours"}},"spec":{"strategy":{"failurePolicy":"Fail"},"containers":[{"name":"a","new":1},{"name":"b"}]}}`, hooked,
			`[{"op":"add","path":"/spec/containers/0/statusContext","value":{"containerID":"x","restartCount":0}},{"op":"add","path":"/spec/containers/1/statusContext","value":{"containerID":"x","restartCount":0}}]`,
		},
		"null in a list": {
			"its neighbours stay where they are", `{"metadata":{"labels":{"a/b~c":"ours"}},"spec":{"strategy":{"failurePolicy":"Fail"},"containers":[null,{"name":"b","statusContext":{"containerID":"x","restartCount":0}}]}}`, hooked,
			`[{"op":"replace","path":"/spec/containers/0","value":{"name":"","statusContext":{"containerID":"x","restartCount":0}}}]`,
		},
		"a longer list": {
			"it comes whole", `{"metadata":{"finalizers":["a"]}}`, func(r *request) { r.Finalizers = append(r.Finalizers, "b") },
			`[{"op":"add","path":"/metadata/finalizers","value":["a","b"]}]`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := &request{}
			if err := review.Unmarshal([]byte(c.sent), before); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			c.change(after)
			got := plaintest.Encode(t, changes(t, c.sent, before, after))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func changes(t *testing.T, sent string, before, after any) []write.Op {
	t.Helper()
	content, err := review.Decode([]byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	same, err := review.Decode([]byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := review.Changes(content, before, after)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(same, content); diff != "" {
		t.Errorf("the input was changed (-was +is):\n%s", diff)
	}
	return patch
}

// FuzzChanges: an API server that applies the patch reads what was meant.
func FuzzChanges(f *testing.F) {
	f.Add(`{"metadata":{"labels":{"a/b~c":"theirs"}},"spec":{"strategy":null,"containers":[{"name":"a"},null,{"statusContext":{"containerID":"y"}}]}}`)
	f.Add(`{}`)
	f.Add(`{"metadata":null,"spec":null}`)
	f.Fuzz(func(t *testing.T, sent string) {
		before := &request{}
		content, err := review.Decode([]byte(sent))
		if err != nil || !json.Valid([]byte(sent)) || review.Unmarshal([]byte(sent), before) != nil {
			t.Skip()
		}
		after := before.DeepCopy()
		hooked(after)
		patch, err := review.Changes(content, before, after)
		if err != nil {
			t.Fatal(err)
		}
		p, err := evanphx.DecodePatch([]byte(plaintest.Encode(t, patch)))
		if err != nil {
			t.Fatal(err)
		}
		applied, err := p.Apply([]byte(sent))
		if err != nil {
			t.Fatalf("%v: %s does not fit", err, plaintest.Encode(t, patch))
		}
		got := &request{}
		if err := review.Unmarshal(applied, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plaintest.Encode(t, after), plaintest.Encode(t, got)); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
	})
}
