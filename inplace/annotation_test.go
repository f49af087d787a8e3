package inplace_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

func TestStateOf(t *testing.T) {
	cases := map[string]struct {
		why         string
		annotations map[string]string
		want        string // revision; empty for none
		err         string // key
	}{
		"none": {why: "most pods never had an update"},
		"empty": {
			why: "an empty text is as good as none", annotations: map[string]string{kruise.InPlaceUpdateStateKey: ""},
		},
		"one": {
			why:         "this is where it is",
			annotations: map[string]string{kruise.InPlaceUpdateStateKey: `{"revision":"a"}`},
			want:        "a",
		},
		"old name": {
			why:         "an older release wrote it",
			annotations: map[string]string{kruise.InPlaceUpdateStateKeyOld: `{"revision":"b"}`},
			want:        "b",
		},
		"both": {
			why: "the newer name holds",
			annotations: map[string]string{
				kruise.InPlaceUpdateStateKey: `{"revision":"a"}`, kruise.InPlaceUpdateStateKeyOld: `{"revision":"b"}`,
			},
			want: "a",
		},
		"more fields": {
			why:         "a newer release may know more",
			annotations: map[string]string{kruise.InPlaceUpdateStateKey: `{"revision":"a","new":{"x":[1]}}`},
			want:        "a",
		},
		"blanks": {
			why: "a user edited it",
			annotations: map[string]string{
				kruise.InPlaceUpdateStateKey: " {\n\t\"revision\" : \"a\" , \"updateImages\" : true }\r\n",
			},
			want: "a",
		},
		"unreadable": {
			why:         "the error tells where",
			annotations: map[string]string{kruise.InPlaceUpdateStateKey: `{"revision":1}`},
			err:         kruise.InPlaceUpdateStateKey,
		},
		"unreadable old name": {
			why:         "the error tells where",
			annotations: map[string]string{kruise.InPlaceUpdateStateKeyOld: `no`},
			err:         kruise.InPlaceUpdateStateKeyOld,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(template(container("c1", "app:1")), "web-1")
			pod.Annotations = tc.annotations
			s, err := inplace.StateOf(pod, nil)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), "["+tc.err+"]: ") {
				t.Fatalf("%s: got error %v", tc.why, err)
			}
			if (s != nil) != (tc.want != "") || s != nil && s.Revision != tc.want {
				t.Errorf("%s: want %q, got %+v", tc.why, tc.want, s)
			}
		})
	}
}

func TestGraceOf(t *testing.T) {
	cases := map[string]struct {
		why         string
		annotations map[string]string
		want        string // revision; empty for none
		err         string // key
	}{
		"none": {why: "most pods wait for nothing"},
		"empty": {
			why: "an empty text is as good as none", annotations: map[string]string{kruise.InPlaceUpdateGraceKey: ""},
		},
		"one": {
			why:         "this is where it is",
			annotations: map[string]string{kruise.InPlaceUpdateGraceKey: `{"revision":"a"}`},
			want:        "a",
		},
		"old name": {
			why:         "an older release wrote it",
			annotations: map[string]string{kruise.InPlaceUpdateGraceKeyOld: `{"revision":"b"}`},
			want:        "b",
		},
		"unreadable": {
			why:         "the error tells where",
			annotations: map[string]string{kruise.InPlaceUpdateGraceKey: `{"graceSeconds":1e99}`},
			err:         kruise.InPlaceUpdateGraceKey,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(template(container("c1", "app:1")), "web-1")
			pod.Annotations = tc.annotations
			g, err := inplace.GraceOf(pod, nil)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), "["+tc.err+"]: ") {
				t.Fatalf("%s: got error %v", tc.why, err)
			}
			if (g != nil) != (tc.want != "") || g != nil && g.Revision != tc.want {
				t.Errorf("%s: want %q, got %+v", tc.why, tc.want, g)
			}
		})
	}
}
