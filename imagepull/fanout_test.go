package imagepull_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

func apply(t *testing.T, r imagepull.Request, n *v1beta1.NodeImage) *v1beta1.NodeImage {
	t.Helper()
	before := n.DeepCopy()
	got, err := r.Apply(n)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, n); diff != "" {
		t.Fatalf("the NodeImage has changed:\n%s", diff)
	}
	return got
}

func TestApplyNew(t *testing.T) {
	r := request(pullJob("b", "nginx:1", func(j *v1beta1.ImagePullJob) {
		j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"a": "b"}}
	}), "s", "s")
	got := apply(t, r, nodeImage("n1", lists("nginx:2", 7, "x"), lists("nginx:0", 0), did("nginx:1", 5, failed)))
	want := v1beta1.ImageSpec{
		PullSecrets:   []v1beta1.ReferenceObject{{Namespace: "kruise-daemon-config", Name: "s"}},
		SandboxConfig: &v1beta1.SandboxConfig{Labels: map[string]string{"a": "b"}},
	}
	old := nodeImage("", lists("nginx:0", 0), lists("nginx:2", 7, "x")).Spec.Images["nginx"].Tags
	want.Tags = []v1beta1.ImageTagSpec{old[0], {
		Tag: "1", Version: 6, CreatedAt: ago(0), ImagePullPolicy: v1beta1.PullIfNotPresent,
		PullPolicy: &v1beta1.ImageTagPullPolicy{
			TimeoutSeconds: seconds(600), BackoffLimit: seconds(3), TTLSecondsAfterFinished: seconds(2100),
		},
		OwnerReferences: []corev1.ObjectReference{owner("b")},
	}, old[1]}
	if diff := cmp.Diff(want, got.Spec.Images["nginx"]); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
	if again := apply(t, r, got); again != nil {
		t.Errorf("applied twice: %s", jsonOf(again.Spec))
	}
	first := apply(t, request(pullJob("b", "nginx@"+digest)), nodeImage("n1")).Spec.Images["nginx"]
	if len(first.Tags) != 1 || first.Tags[0].Tag != digest || first.Tags[0].Version != 0 ||
		len(first.Tags[0].OwnerReferences) != 1 {
		t.Errorf("of a digest: %s", jsonOf(first))
	}
}

func endedAgo(d time.Duration) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) { n.Status.ImageStatuses["nginx"].Tags[0].CompletionTime = ago(d) }
}

// A job that joins a tag has the node pull again only where what the others get is not enough, or no longer certain.
func TestApplyJoins(t *testing.T) {
	wantsAlways := edit("nginx", func(s *v1beta1.ImageTagSpec) { s.ImagePullPolicy = v1beta1.PullAlways })
	wantsNothing := edit("nginx", func(s *v1beta1.ImageTagSpec) { s.ImagePullPolicy = "" })
	for name, test := range map[string]struct {
		node    []func(*v1beta1.NodeImage)
		job     []func(*v1beta1.ImagePullJob)
		version int64
		policy  v1beta1.ImagePullPolicy
	}{
		"not begun":                    {nil, nil, 3, v1beta1.PullIfNotPresent},
		"under way":                    {list(did("nginx:1", 3, pulling)), nil, 3, v1beta1.PullIfNotPresent},
		"under way for an older round": {list(did("nginx:1", 2, succeeded)), nil, 3, v1beta1.PullIfNotPresent},
		"under way, and really pulled": {
			node: list(wantsAlways, did("nginx:1", 3, pulling)), job: list(always), version: 3, policy: v1beta1.PullAlways,
		},
		"under way, pulled without a policy": {list(wantsNothing, did("nginx:1", 3, pulling)), list(always), 3, ""},
		"under way, more than is asked for":  {list(wantsAlways), nil, 3, v1beta1.PullAlways},
		"under way, less than is asked for":  {list(did("nginx:1", 3, pulling)), list(always), 4, v1beta1.PullAlways},
		"it has the image":                   {list(did("nginx:1", 3, succeeded)), nil, 3, v1beta1.PullIfNotPresent},
		"it had the image four minutes ago": {
			node: list(did("nginx:1", 3, succeeded), endedAgo(4*time.Minute)), version: 3, policy: v1beta1.PullIfNotPresent,
		},
		"it may have lost the image since": {
			node: list(did("nginx:1", 3, succeeded), endedAgo(5*time.Minute)), version: 4, policy: v1beta1.PullIfNotPresent,
		},
		"the success has no time": {
			node: list(did("nginx:1", 3, succeeded), func(n *v1beta1.NodeImage) {
				n.Status.ImageStatuses["nginx"].Tags[0].CompletionTime = nil
			}),
			version: 4,
			policy:  v1beta1.PullIfNotPresent,
		},
		"it has it, but may be outdated": {list(did("nginx:1", 3, succeeded)), list(always), 4, v1beta1.PullAlways},
		"it failed": {
			node: list(wantsAlways, did("nginx:1", 3, failed)), version: 4, policy: v1beta1.PullIfNotPresent,
		},
		"it failed, with later times": {
			node:    list(did("nginx:1", 3, failed), func(n *v1beta1.NodeImage) { n.Spec.Images["nginx"].Tags[0].Version = 2 }),
			job:     list(always),
			version: 4,
			policy:  v1beta1.PullAlways,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeImage("n1", append(list(lists("nginx:1", 3, "a"), secretsOf("nginx", v1beta1.ReferenceObject{
				Namespace: "kruise-daemon-config", Name: "s1",
			})), test.node...)...)
			old := n.Spec.Images["nginx"].Tags[0]
			got := apply(t, request(pullJob("b", "nginx:1", test.job...), "s1", "s2"), n).Spec.Images["nginx"]
			tag := got.Tags[0]
			if tag.Version != test.version || tag.ImagePullPolicy != test.policy {
				t.Errorf("version %d, policy %s", tag.Version, tag.ImagePullPolicy)
			}
			if restarted := tag.CreatedAt.Equal(ago(0)); restarted != (tag.Version != old.Version) {
				t.Errorf("created at %v", tag.CreatedAt)
			}
			if diff := cmp.Diff([]corev1.ObjectReference{owner("a"), owner("b")}, tag.OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if len(got.PullSecrets) != 2 || got.PullSecrets[1].Name != "s2" {
				t.Errorf("secrets %v", got.PullSecrets)
			}
		})
	}
}

func list[T any](all ...T) []T { return all }

// A version begins again after the last one, and is never negative.
func TestApplyVersions(t *testing.T) {
	for name, test := range map[string]struct{ spec, status, want int64 }{
		"the last one":       {math.MaxInt64, math.MaxInt64, 0},
		"negative":           {math.MinInt64, math.MinInt64, 0},
		"one before nothing": {-1, -1, 0},
	} {
		n := nodeImage("n1", lists("nginx:1", test.spec, "a"), did("nginx:1", test.status, failed))
		if got := apply(t, request(pullJob("b", "nginx:1")), n).Spec.Images["nginx"].Tags[0].Version; got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// limitsText has timeout, backoff, TTL and deadline of a tag in short.
func limitsText(p *v1beta1.ImageTagPullPolicy) string {
	text := func(n *int32) string {
		if n == nil {
			return "-"
		}
		return strconv.Itoa(int(*n))
	}
	limits := text(p.TimeoutSeconds) + " " + text(p.BackoffLimit) + " " + text(p.TTLSecondsAfterFinished)
	if p.ActiveDeadlineSeconds == nil {
		return limits + " -"
	}
	return limits + " " + strconv.FormatInt(*p.ActiveDeadlineSeconds, 10)
}

func TestApplyLimits(t *testing.T) {
	const most = math.MaxInt32
	job := func(timeout, backoff int32, change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
		j := pullJob("b", "nginx:1", change...)
		j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &backoff}
		return j
	}
	bare := pullJob("b", "nginx:1")
	bare.Spec.PullPolicy = nil
	late := pullJob("b", "nginx:1", deadline(math.MaxInt64))
	late.Spec.PullPolicy = nil
	theirs := func(timeout, backoff, ttl int32, deadline int64) *v1beta1.ImageTagPullPolicy {
		return &v1beta1.ImageTagPullPolicy{
			TimeoutSeconds: &timeout, BackoffLimit: &backoff, TTLSecondsAfterFinished: &ttl, ActiveDeadlineSeconds: &deadline,
		}
	}
	none, timeless := &v1beta1.ImageTagPullPolicy{}, &v1beta1.ImageTagPullPolicy{ActiveDeadlineSeconds: longSeconds(7)}
	for name, test := range map[string]struct {
		job    *v1beta1.ImagePullJob
		random uint32
		keep   *int32
		have   *v1beta1.ImageTagPullPolicy // of a tag that is joined
		want   string
	}{
		"all attempts and a rest":      {job(60, 2), 7, nil, nil, "60 2 427 -"},
		"nothing said":                 {bare, 0, nil, nil, "- - 2100 -"},
		"randomness has a width":       {bare, math.MaxUint32, nil, nil, fmt.Sprint("- - ", 2100+math.MaxUint32%300, " -")},
		"another rest":                 {bare, 0, seconds(5), nil, "- - 1805 -"},
		"a negative rest is none":      {bare, 0, seconds(-5), nil, "- - 1800 -"},
		"the deadline":                 {job(60, 2, deadline(100)), 0, nil, nil, "60 2 400 100"},
		"the ttl before the deadline":  {job(60, 2, deadline(100), ttl(20)), 0, nil, nil, "60 2 320 100"},
		"as recorded":                  {job(60, 2, deadline(600), ttl(3000)), 110, nil, nil, "60 2 3410 600"},
		"no end, at the least":         {job(60, 2, never), 0, nil, nil, "60 2 85800 1800"},
		"no end, at the most":          {job(9000, 2, never), 1199, nil, nil, "9000 2 86999 9000"},
		"more than a number holds":     {job(most, most), 299, seconds(most), nil, fmt.Sprint(most, most, most, " -")},
		"the largest deadline":         {late, 299, nil, nil, fmt.Sprint("- - ", most, " ", math.MaxInt64)},
		"negative numbers":             {job(-5, 7, ttl(-100)), 0, nil, nil, "-5 7 300 -"},
		"joined, ours are larger":      {job(60, 9, deadline(100)), 0, nil, theirs(5, 1, 1, 1), "60 9 400 100"},
		"joined, theirs are larger":    {job(60, 9, deadline(100)), 0, nil, theirs(70, 10, 9999, 101), "70 10 9999 101"},
		"joined, a default is larger":  {job(60, 1, deadline(100)), 0, nil, none, "- - - -"},
		"joined, a default is smaller": {job(601, 4), 0, nil, timeless, "601 4 - -"},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeImage("n1")
			if test.have != nil {
				lists("nginx:1", 0, "a")(n)
				n.Spec.Images["nginx"].Tags[0].PullPolicy = test.have
			}
			r := request(test.job)
			r.Random, r.KeepSeconds = test.random, test.keep
			if got := limitsText(apply(t, r, n).Spec.Images["nginx"].Tags[0].PullPolicy); got != test.want {
				t.Errorf("limits %q, want %q", got, test.want)
			}
		})
	}
}

// What ended a while ago stays as long as if it had been pulled now.
func TestApplyStays(t *testing.T) {
	n := nodeImage("n1", lists("nginx:1", 0, "a"), did("nginx:1", 0, succeeded))
	n.Status.ImageStatuses["nginx"].Tags[0].CompletionTime = ago(200 * time.Second)
	if got := apply(t, request(pullJob("b", "nginx:1", ttl(820))),
		n).Spec.Images["nginx"].Tags[0].PullPolicy.TTLSecondsAfterFinished; *got != 1320 {
		t.Errorf("%d seconds", *got)
	}
}

func TestApplySandbox(t *testing.T) {
	theirs, ours := &v1beta1.SandboxConfig{Labels: map[string]string{"a": "1"}}, &v1beta1.SandboxConfig{
		Labels: map[string]string{"b": "2"},
	}
	for name, test := range map[string]struct {
		ours, want *v1beta1.SandboxConfig
		told       bool
	}{
		"ours replaces theirs":       {ours, ours, false},
		"none erases nothing":        {nil, theirs, false},
		"told already, nothing more": {ours, theirs, true},
	} {
		n := nodeImage("n1", lists("nginx:1", 0, "a"))
		if test.told {
			n = nodeImage("n1", lists("nginx:1", 0, "b"))
		}
		i := n.Spec.Images["nginx"]
		i.SandboxConfig = theirs
		n.Spec.Images["nginx"] = i
		got := apply(t,
			request(pullJob("b", "nginx:1", func(j *v1beta1.ImagePullJob) { j.Spec.SandboxConfig = test.ours }), "new"), n)
		if diff := cmp.Diff(test.want, got.Spec.Images["nginx"].SandboxConfig); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A node that lists the job already, and lacks a secret, gets the secret and nothing else.
func TestApplyMends(t *testing.T) {
	n := nodeImage("n1", lists("nginx:1", 3, "b"), did("nginx:1", 3, failed))
	got := apply(t, request(pullJob("b", "nginx:1"), "s"), n)
	want := n.DeepCopy()
	secretsOf("nginx", v1beta1.ReferenceObject{Namespace: "kruise-daemon-config", Name: "s"})(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NodeImage (-want +got):\n%s", diff)
	}
}

func TestApplyRefuses(t *testing.T) {
	n := nodeImage("n1", full)
	if _, err := request(pullJob("b", "nginx:1")).Apply(n); !errors.Is(err, imagepull.ErrFull) ||
		!strings.HasPrefix(err.Error(), "n1: image nginx: ") {
		t.Error(err)
	}
	if got := apply(t, request(pullJob("b", "other-7:2")), n); len(got.Spec.Images["other-7"].Tags) != 2 {
		t.Error("another tag of what is listed needs no room")
	}
	if _, err := request(pullJob("b", "a b")).Apply(n); err == nil || !strings.HasPrefix(err.Error(), "spec.image: ") {
		t.Error(err)
	}
}
