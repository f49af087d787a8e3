package inplace_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			var e *inplace.AnnotationError
			if errors.As(err, &e) != (tc.err != "") ||
				e != nil && (e.Key != tc.err || errors.Unwrap(err) == nil || !strings.Contains(err.Error(), tc.err)) {
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
			var e *inplace.AnnotationError
			if errors.As(err, &e) != (tc.err != "") || e != nil && e.Key != tc.err {
				t.Fatalf("%s: got error %v", tc.why, err)
			}
			if (g != nil) != (tc.want != "") || g != nil && g.Revision != tc.want {
				t.Errorf("%s: want %q, got %+v", tc.why, tc.want, g)
			}
		})
	}
}

// TestStateIsReadAsJSON compares the fast way with the standard one where the text is unusual.
func TestStateIsReadAsJSON(t *testing.T) {
	for _, text := range []string{
		`null`, `[]`, `1`, `"x"`, `{}`, `{"Revision":"a"}`, `{"revision":"a","revision":"b"}`, `{"rev\u0069sion":"a"}`,
		`{"revision":"\u0061"}`, "{\"revision\":\"\xff\"}",
		`{"updateTimestamp":null}`, `{"updateTimestamp":""}`, `{"updateTimestamp":"2026-11-21T03:00:05+02:00"}`,
		`{"updateTimestamp":"yesterday"}`,
		`{"updateImages":false}`, `{"updateImages":null}`, `{"updateImages":"true"}`, `{"lastContainerStatuses":{"a":null}}`,
		`{"lastContainerStatuses":[]}`,
		`{"lastContainerStatuses":{"a\u0062":{"imageID":"x"},"":{}}}`,
		"{\"lastContainerStatuses\":{\"\xfe\":{\"imageID\":\"x\"}}}",
		`{"lastContainerStatuses":{"a":{},"a":{"imageID":"x"}}}`,
		`{"lastContainerStatuses":{"a":{"restartCount":1e0}}}`, `{"lastContainerStatuses":{"a":{"restartCount":2147483648}}}`,
		`{"lastContainerStatuses":{"a":{"restartCount":-0}}}`,
		`{"lastContainerStatuses":{"a":{"imageID":"x","imageID":"y","more":1}}}`,
		`{"lastContainerStatuses":{"a":{"imageID":"}],\""}},"updateImages":true}`,
		`{"containerBatchesRecord":null}`, `{"containerBatchesRecord":[]}`, `{"containerBatchesRecord":[null]}`,
		`{"containerBatchesRecord":[{}]}`, `{"containerBatchesRecord":[1]}`,
		`{"containerBatchesRecord":[{"containers":null},{"containers":[]},{"containers":["a","b"]}]}`,
		`{"containerBatchesRecord":[{"containers":["a"],"containers":["b"]}]}`,
		`{"containerBatchesRecord":[{"containers":[1]}]}`, `{"containerBatchesRecord":{"containers":[]}}`,
		`{"containerBatchesRecord":[{"containers":{}}]}`,
		`{"nextContainerImages":{"a":"b"}}`, `{"preCheckBeforeNext":{"containersRequiredReady":["a"]}}`, `{"revision":"a"}x`,
		`{"revision":"a",}`, `{`, ` `,
		" {\t\"revision\" :\n\"a\" ,\r\"updateImages\": true } ", `{"revision":"a" "updateImages":true}`, `{"revision" "a"}`,
		`{,}`, `{"revision":"a`, `{"updateImages":truefalse}`,
		`{"lastContainerStatuses":null,"lastContainerStatuses":{"a":{}}}`,
		`{"lastContainerStatuses":{"a":{}},"lastContainerStatuses":null}`, `{"lastContainerStatuses":nullx}`,
		`{"lastContainerStatuses":{"a":{}},"lastContainerStatuses":{"b":{}}}`,
		`{"lastContainerStatuses":{"a":{"restartCount":0}}}`, `{"lastContainerStatuses":{"a":{"restartCount":07}}}`,
		`{"lastContainerStatuses":{"a":{"restartCount":}}}`, `{"lastContainerStatuses":{"a":{"restartCount":7.5}}}`,
		`{"lastContainerStatuses":{"a":{"restartCount":+7}}}`,
		`{"containerBatchesRecord":[{"containers":["a"]}],"containerBatchesRecord":[{}]}`,
		`{"containerBatchesRecord":[],"containerBatchesRecord":[{}]}`, `{"containerBatchesRecord":[{},]}`,
		`{"containerBatchesRecord":[{}{}]}`, `{"containerBatchesRecord":[{"containers":["a",]}]}`,
		`{"containerBatchesRecord":[{"containers":["a" "b"]}]}`, "{\"revision\":\"a\tb\"}", "{\"revision\":\"\u00e9\"}",
	} {
		compareWithJSON(t, text)
	}
}

func compareWithJSON(t *testing.T, text string) {
	t.Helper()
	pod := running(template(container("c1", "app:1")), "web-1")
	pod.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: text}
	got, err := inplace.StateOf(pod, nil)
	if text == "" {
		return
	}
	want := &kruise.InPlaceUpdateState{}
	if wantErr := json.Unmarshal([]byte(text), want); wantErr != nil {
		if err == nil || !strings.HasSuffix(err.Error(), wantErr.Error()) {
			t.Errorf("%s: want error %v, got %v", text, wantErr, err)
		}
		return
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%s: %v (-want +got):\n%s", text, err, d)
	}
}
