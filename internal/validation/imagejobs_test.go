package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// TestTemplate has the rules that hold for jobs and for lists.
func TestPullTemplate(t *testing.T) {
	const always = `,"completionPolicy":{"type":"Always"`
	cases := map[string]struct {
		why, template string
		want          []string
	}{
		"duplicate name": {
			"the user meant another one", `"selector":{"names":["n2","n4","n2"]}` + always + `}`,
			[]string{"spec.selector.names[2]: Duplicate value"},
		},
		"names and labels": {
			"which of the two?", `"selector":{"names":["n2"],"matchLabels":{"a":"b"}}` + always + `}`,
			[]string{"spec.selector.names: Forbidden"},
		},
		"In without values": {
			"it matches nothing", `"selector":{"matchExpressions":[{"key":"c","operator":"In"}]}` + always + `}`,
			[]string{"spec.selector.matchExpressions[0].values: Required value"},
		},
		"nodes and pods": {
			"which of the two?", `"selector":{},"podSelector":{}` + always + `}`, []string{"spec.selector: Forbidden"},
		},

		"secrets": {
			"as many as may be", `"pullSecrets":["s"` + strings.Repeat(`,"s"`, 31) + `]` + always + `}`, nil,
		},
		"too many secrets": {
			"each is copied", `"pullSecrets":["s"` + strings.Repeat(`,"s"`, 32) + `]` + always + `}`,
			[]string{"spec.pullSecrets: Too many"},
		},

		"sandbox": {
			"as long as may be", `"sandboxConfig":{"annotations":{"a":"` + strings.Repeat("x", 16377) + `"}}` + always + `}`,
			nil,
		},
		"too long a sandbox": {
			"it is copied to each node",
			`"sandboxConfig":{"annotations":{"a":"` + strings.Repeat("x", 16378) + `"}}` + always + `}`,
			[]string{"spec.sandboxConfig: Invalid value"},
		},

		"paused": {"no node pulls", `"parallelism":0` + always + `}`, nil},
		"negative": {
			"no number of nodes is below zero", `"parallelism":-1` + always + `}`, []string{"spec.parallelism: Invalid value"},
		},
		"no number": {
			"nodes cannot be counted by it", `"parallelism":"abc"` + always + `}`, []string{"spec.parallelism: Invalid value"},
		},
		"too large a number": {
			"it is none of 32 bits", `"parallelism":"4294967297"` + always + `}`, []string{"spec.parallelism: Invalid value"},
		},

		"unknown end": {
			"the value is unknown", `"completionPolicy":{"type":"Sometimes"}`,
			[]string{"spec.completionPolicy.type: Unsupported value"},
		},
		"never": {"it serves nodes that come later", `"completionPolicy":{"type":"Never"}`, nil},
		"never with a deadline": {
			"it has no end", `"completionPolicy":{"type":"Never","activeDeadlineSeconds":1000}`,
			[]string{"spec.completionPolicy.activeDeadlineSeconds: Forbidden"},
		},
		"deadline of a timeout": {
			"one attempt fits", `"pullPolicy":{"timeoutSeconds":20}` + always + `,"activeDeadlineSeconds":20}`, nil,
		},
		"deadline too short": {
			"not one attempt fits", `"pullPolicy":{"timeoutSeconds":20}` + always + `,"activeDeadlineSeconds":19}`,
			[]string{"spec.completionPolicy.activeDeadlineSeconds: Invalid value"},
		},
		"no pull policy": {"the timeout is 600", `"parallelism":1` + always + `,"activeDeadlineSeconds":600}`, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			job, list := &appsv1beta1.ImagePullJob{}, &appsv1beta1.ImageListPullJob{}
			validationtest.Decode(t, `{"spec":{"image":"app:1",`+c.template+`}}`, job)
			validationtest.Decode(t, `{"spec":{"images":["app:1"],`+c.template+`}}`, list)
			if diff := cmp.Diff(c.want, validationtest.Places(validation.ImagePullJob(job))); diff != "" {
				t.Errorf("job: %s (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(c.want, validationtest.Places(validation.ImageListPullJob(list))); diff != "" {
				t.Errorf("list: %s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestPullImages(t *testing.T) {
	many := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("app:%d", i)
		}
		return all
	}
	digest := "repo@sha256:" + strings.Repeat("0", 64)
	cases := map[string]struct {
		why    string
		images []string
		want   []string
	}{
		"good": {
			"all forms of references", []string{"nginx", "team/app:1", "registry.example.com:5000/a/b:c", digest}, nil,
		},
		"none":         {"what for?", nil, []string{"spec.images: Required value"}},
		"empty":        {"it is no reference", []string{""}, []string{"spec.images[0]: Required value"}},
		"capitals":     {"no repository has any", []string{"Nginx"}, []string{"spec.images[0]: Invalid value"}},
		"short digest": {"it is no reference", []string{"a", "repo@sha256:0123"}, []string{"spec.images[1]: Invalid value"}},
		"twice":        {"one job for each", []string{"a", "b", "a"}, []string{"spec.images[2]: Duplicate value"}},
		"many":         {"so many may be", many(255), nil},
		"too many": {
			"the count is reported before any is read", append(many(255), ":"), []string{"spec.images: Too many"},
		},
		"all at once": {
			"in this order",
			[]string{":", "a", "a"},
			[]string{"spec.images[2]: Duplicate value", "spec.images[0]: Invalid value"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			list := &appsv1beta1.ImageListPullJob{Spec: appsv1beta1.ImageListPullJobSpec{Images: c.images}}
			list.Default()
			if diff := cmp.Diff(c.want, validationtest.Places(validation.ImageListPullJob(list))); diff != "" {
				t.Errorf("list: %s (-want +got):\n%s", c.why, diff)
			}
			if len(c.images) != 1 {
				return
			}
			job := &appsv1beta1.ImagePullJob{Spec: appsv1beta1.ImagePullJobSpec{Image: c.images[0]}}
			job.Default()
			want := strings.ReplaceAll(c.want[0], "images[0]", "image")
			if diff := cmp.Diff([]string{want}, validationtest.Places(validation.ImagePullJob(job))); diff != "" {
				t.Errorf("job: %s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// TestOrder: the first fault is the one that the reference reports.
func TestPullOrder(t *testing.T) {
	job := &appsv1beta1.ImagePullJob{}
	validationtest.Decode(t,
		`{"spec":{"image":"","parallelism":-1,"completionPolicy":{},"selector":{"names":["a","a"]},"podSelector":{"matchLabels":{"a b":"c"}}}}`,
		job)
	want := []string{
		"spec.selector: Forbidden", "spec.selector.names[1]: Duplicate value", "spec.podSelector.matchLabels: Invalid value",
		"spec.image: Required value", "spec.parallelism: Invalid value", "spec.completionPolicy.type: Unsupported value",
	}
	if diff := cmp.Diff(want, validationtest.Places(validation.ImagePullJob(job))); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestNodeImage(t *testing.T) {
	const good = `"createdAt":"2024-05-06T07:08:09Z","pullPolicy":{"ttlSecondsAfterFinished":300}`
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"app-%d":{"tags":[]}`, i))
		}
		return strings.Join(all, ",")
	}
	cases := map[string]struct {
		why, images string
		want        []string
	}{
		"good": {
			"a tag and a digest", `"nginx":{"tags":[{"tag":"1",` + good + `},{"tag":"sha256:0","version":3,` + good + `}]}`, nil,
		},
		"many":     {"so many may be", many(256), nil},
		"too many": {"they would not fit into an object", many(257), []string{"spec.images: Too many"}},
		"no name":  {"of what?", `"":{"tags":[]}`, []string{"spec.images: Required value"}},
		"no tag": {
			"of what?", `"nginx":{"tags":[{"tag":"",` + good + `}]}`, []string{"spec.images[nginx].tags[].tag: Required value"},
		},
		"twice": {
			"two would write one status", `"nginx":{"tags":[{"tag":"1",` + good + `},{"tag":"1",` + good + `}]}`,
			[]string{"spec.images[nginx].tags[1].tag: Duplicate value"},
		},
		"no createdAt": {
			"deadlines begin there", `"nginx":{"tags":[{"tag":"1","pullPolicy":{"ttlSecondsAfterFinished":0}}]}`,
			[]string{"spec.images[nginx].tags[1].createdAt: Required value"},
		},
		"version": {
			"it only grows", `"nginx":{"tags":[{"tag":"1","version":-1,` + good + `}]}`,
			[]string{"spec.images[nginx].tags[1].version: Invalid value"},
		},
		"no pull policy": {
			"the end is unknown", `"nginx":{"tags":[{"tag":"1","createdAt":"2024-05-06T07:08:09Z"}]}`,
			[]string{"spec.images[nginx].tags[1].pullPolicy: Required value"},
		},
		"no ttl": {
			"the end is unknown", `"nginx":{"tags":[{"tag":"1","createdAt":"2024-05-06T07:08:09Z","pullPolicy":{}}]}`,
			[]string{"spec.images[nginx].tags[1].pullPolicy.ttlSecondsAfterFinished: Required value"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			node := &appsv1beta1.NodeImage{}
			validationtest.Decode(t, `{"spec":{"images":{`+c.images+`}}}`, node)
			if diff := cmp.Diff(c.want, validationtest.Places(validation.NodeImage(node))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// TestImagePullJobUpdate: the secrets of a job cannot change, not even their order; none at all and an empty list are
// the same.
func TestImagePullJobUpdate(t *testing.T) {
	cases := map[string]struct {
		stored, now string
		refused     bool
	}{
		"unchanged":  {`["a","b"]`, `["a","b"]`, false},
		"both empty": {`null`, `[]`, false},
		"added":      {`null`, `["a"]`, true},
		"removed":    {`["a"]`, `null`, true},
		"changed":    {`["a"]`, `["b"]`, true},
		"moved":      {`["a","b"]`, `["b","a"]`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now, stored := &appsv1beta1.ImagePullJob{}, &appsv1beta1.ImagePullJob{}
			validationtest.Decode(t, `{"spec":{"image":"a","pullSecrets":`+c.now+`}}`, now)
			validationtest.Decode(t, `{"spec":{"image":"b","parallelism":3,"pullSecrets":`+c.stored+`}}`, stored)
			if got := validation.ImagePullJobUpdate(now, stored); (got != nil) != c.refused {
				t.Errorf("got %v", got)
			}
		})
	}
}
