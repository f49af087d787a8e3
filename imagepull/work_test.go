package imagepull_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// begun is the pull that a node begins for its only tag.
func begun(t *testing.T, n *v1beta1.NodeImage) imagepull.Pull {
	t.Helper()
	plan := imagepull.Work(n, nil)
	if len(plan.Start) != 1 {
		t.Fatalf("%d pulls to begin", len(plan.Start))
	}
	return plan.Start[0]
}

func limits(timeout, backoff *int32, deadline *int64) func(*v1beta1.NodeImage) {
	return edit("nginx", func(s *v1beta1.ImageTagSpec) {
		s.PullPolicy = &v1beta1.ImageTagPullPolicy{
			TimeoutSeconds: timeout, BackoffLimit: backoff, ActiveDeadlineSeconds: deadline,
		}
	})
}

// Attempts are printed as a line: each with its timeout, and how long was waited before it.
func TestAttempts(t *testing.T) {
	always := edit("nginx", func(s *v1beta1.ImageTagSpec) { s.ImagePullPolicy = v1beta1.PullAlways })
	for name, test := range map[string]struct {
		change []func(*v1beta1.NodeImage)
		takes  time.Duration // each attempt, unless it times out
		works  int           // the attempt that works
		want   string
	}{
		"at once":         {nil, 5 * time.Second, 1, "try 10m0s if absent, Succeeded "},
		"the second time": {nil, 0, 2, "try 10m0s if absent, wait 1s, try 10m0s if absent, Succeeded "},
		"never": {
			want: "try 10m0s if absent, wait 1s, try 10m0s if absent, wait 2s, try 10m0s if absent, wait 4s, " +
				"try 10m0s if absent, Failed error 4",
		},
		"no policy": {
			change: list(edit("nginx", func(s *v1beta1.ImageTagSpec) { s.PullPolicy = nil }), always),
			want:   "try 10m0s, wait 1s, try 10m0s, wait 2s, try 10m0s, wait 4s, try 10m0s, Failed error 4",
		},
		"one attempt": {list(always, limits(nil, seconds(0), nil)), 0, 0, "try 10m0s, Failed error 1"},
		"three attempts": {
			change: list(always, limits(seconds(7), seconds(2), nil)),
			want:   "try 7s, wait 1s, try 7s, wait 2s, try 7s, Failed error 3",
		},
		"a negative is no limit": {
			change: list(always, limits(seconds(-7), seconds(-1), nil)),
			want:   "try 10m0s, wait 1s, try 10m0s, wait 2s, try 10m0s, wait 4s, try 10m0s, Failed error 4",
		},
		"waits have a limit": {
			change: list(always, limits(seconds(1), seconds(7), nil)),
			want: "try 1s, wait 1s, try 1s, wait 2s, try 1s, wait 4s, try 1s, wait 8s, try 1s, wait 16s, try 1s, wait 30s, " +
				"try 1s, wait 30s, try 1s, Failed error 8",
		},
		"a slow pull": {
			change: list(always, limits(nil, nil, longSeconds(5))),
			takes:  time.Hour,
			want:   "try 5s, Failed pulling exceeds the activeDeadlineSeconds",
		},
		"a deadline while waiting": {
			change: list(always, limits(seconds(3), nil, longSeconds(5))),
			takes:  3 * time.Second,
			want:   "try 3s, wait 1s, try 1s, Failed pulling exceeds the activeDeadlineSeconds",
		},
		"a deadline before a try": {
			change: list(always, limits(seconds(3), nil, longSeconds(4))),
			takes:  time.Second,
			want:   "try 3s, wait 1s, try 2s, wait 1s, Failed pulling exceeds the activeDeadlineSeconds",
		},
		"a deadline in the past": {
			change: list(always, limits(nil, nil, longSeconds(-1))), want: "Failed pulling exceeds the activeDeadlineSeconds",
		},
		"a deadline for ever": {
			change: list(always, limits(nil, seconds(0), longSeconds(math.MaxInt64))), want: "try 10m0s, Failed error 1",
		},
		"the longest timeout": {
			change: list(always, limits(seconds(math.MaxInt32), nil, nil)), works: 1, want: "try 596523h14m7s, Succeeded ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, now := begun(t, nodeImage("n1", append(list(lists("nginx:1", 0)), test.change...)...)), noon()
			var told []string
			for attempts := 0; len(told) < 100; {
				var turn imagepull.Turn
				p, turn = p.Next(now)
				if turn.Do == imagepull.DoStop {
					break
				}
				if turn.Do == imagepull.DoWait {
					told = append(told, fmt.Sprint("wait ", turn.Wait))
					now = now.Add(turn.Wait)
					continue
				}
				attempts++
				story := fmt.Sprint("try ", turn.Timeout)
				if turn.IfAbsent {
					story += " if absent"
				}
				told, now = append(told, story), now.Add(min(test.takes, turn.Timeout))
				if attempts == test.works {
					p = p.Succeed("sha256:1", now)
				} else {
					p = p.Fail(fmt.Sprint("error ", attempts), now)
				}
			}
			told = append(told, fmt.Sprintf("%s %s", p.Status.Phase, p.Status.Message))
			if diff := cmp.Diff(test.want, strings.Join(told, ", ")); diff != "" {
				t.Errorf("story (-want +got):\n%s", diff)
			}
			if !p.Ended() || !p.Status.CompletionTime.Time.Equal(now) || !p.Status.StartTime.Equal(ago(0)) {
				t.Errorf("status %s at %v", jsonOf(p.Status), now)
			}
		})
	}
}

// What has ended stays so, whatever comes late.
func TestAttemptStatus(t *testing.T) {
	p := begun(t, nodeImage("n1", lists("nginx:1", 4)))
	if diff := cmp.Diff(v1beta1.ImageTagStatus{Tag: "1", Version: 4, Phase: waiting}, p.Status); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	running, _ := p.Next(noon())
	if diff := cmp.Diff(v1beta1.ImageTagStatus{Tag: "1", Version: 4, Phase: pulling, StartTime: ago(0)},
		running.Status); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	done := running.Succeed("sha256:1", noon())
	want := v1beta1.ImageTagStatus{
		Tag:            "1",
		Version:        4,
		Phase:          succeeded,
		Progress:       100,
		StartTime:      ago(0),
		CompletionTime: ago(0),
		ImageID:        "nginx@sha256:1",
	}
	if diff := cmp.Diff(want, done.Status); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	late, turn := done.Fail("late", noon()).Succeed("other", noon().Add(1)).Next(noon())
	if diff := cmp.Diff(done, late); diff != "" || turn.Do != imagepull.DoStop {
		t.Errorf("late (-want +got):\n%s\n%v", diff, turn)
	}
	if s := p.Succeed("", noon()).Status; s.ImageID != "" || s.StartTime == nil {
		t.Errorf("no id: %s", jsonOf(s))
	}
	if p.Status.Phase != waiting || running.Ended() {
		t.Error("a pull that was passed by has changed")
	}
	lone := begun(t, nodeImage("n1", lists("nginx:1", 0), limits(nil, seconds(0), nil)))
	if s := lone.Fail("", noon()).Status; s.Message == "" {
		t.Error("a failure that says nothing")
	}
}

func names(pulls []imagepull.Pull) string {
	var all []string
	for _, p := range pulls {
		all = append(all, fmt.Sprintf("%s v%d", p.Reference, p.Tag.Version))
	}
	return strings.Join(all, ", ")
}

func TestWork(t *testing.T) {
	start := func(change ...func(*v1beta1.NodeImage)) []imagepull.Pull {
		var pulls []imagepull.Pull
		for _, p := range imagepull.Work(nodeImage("n1", change...), nil).Start {
			p, _ = p.Next(noon())
			pulls = append(pulls, p)
		}
		return pulls
	}
	one, redis := start(lists("nginx:1", 0)), start(lists("redis:1", 0))
	done := list(one[0].Succeed("", noon()))
	for name, test := range map[string]struct {
		node              []func(*v1beta1.NodeImage)
		pulls             []imagepull.Pull
		start, keep, stop string
		counts            string // pulling/succeeded/failed/waiting of desired
	}{
		"nothing":  {nil, nil, "", "", "", "0/0/0/0 of 0"},
		"an image": {list(lists("nginx:1", 0)), nil, "nginx:1 v0", "", "", "0/0/0/1 of 1"},
		"a digest": {
			node: list(lists("nginx@"+digest, 0)), start: "nginx@" + digest + " v0", counts: "0/0/0/1 of 1",
		},
		"it goes on": {list(lists("nginx:1", 0)), one, "", "nginx:1 v0", "", "1/0/0/0 of 1"},
		"another image": {
			node:   list(lists("nginx:1", 0), lists("busybox:1", 0)),
			pulls:  one,
			start:  "busybox:1 v0",
			keep:   "nginx:1 v0",
			counts: "1/0/0/1 of 2",
		},
		"an image leaves": {
			node:   list(lists("nginx:1", 0)),
			pulls:  append(list(redis...), one...),
			keep:   "nginx:1 v0",
			stop:   "redis:1 v0",
			counts: "1/0/0/0 of 1",
		},
		"a tag leaves":          {list(lists("nginx:2", 0)), one, "nginx:2 v0", "", "nginx:1 v0", "0/0/0/1 of 1"},
		"another round":         {list(lists("nginx:1", 1)), one, "nginx:1 v1", "", "nginx:1 v0", "0/0/0/1 of 1"},
		"done, and not written": {list(lists("nginx:1", 0)), done, "", "nginx:1 v0", "", "0/1/0/0 of 1"},
		"done before a restart": {
			node: list(lists("nginx:1", 0), did("nginx:1", 0, succeeded)), counts: "0/1/0/0 of 1",
		},
		"begun before a restart": {
			node: list(lists("nginx:1", 0), did("nginx:1", 0, pulling)), start: "nginx:1 v0", counts: "0/0/0/1 of 1",
		},
		"ended by the controller": {
			node: list(lists("nginx:1", 0), did("nginx:1", 0, failed)), pulls: one, stop: "nginx:1 v0", counts: "0/0/1/0 of 1",
		},
		"the last round does not count": {
			node: list(lists("nginx:1", 1), did("nginx:1", 0, succeeded)), start: "nginx:1 v1", counts: "0/0/0/1 of 1",
		},
		"one pull twice": {
			node:   list(lists("nginx:1", 1)),
			pulls:  append(list(start(lists("nginx:1", 1))...), one...),
			keep:   "nginx:1 v1",
			stop:   "nginx:1 v0",
			counts: "1/0/0/0 of 1",
		},
		"one tag twice": {
			node: list(lists("nginx:1", 0), lists("nginx:1", 0)), pulls: one, keep: "nginx:1 v0", counts: "1/0/0/0 of 2",
		},
		"statuses of what is not asked for": {list(did("nginx:1", 0, succeeded)), nil, "", "", "", "0/0/0/0 of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeImage("n1", test.node...)
			n.Status.FirstSyncStatus = &v1beta1.SyncStatus{Message: "kept"}
			before := n.DeepCopy()
			plan := imagepull.Work(n, test.pulls)
			if diff := cmp.Diff(before, n); diff != "" {
				t.Fatalf("the NodeImage has changed:\n%s", diff)
			}
			if names(plan.Start) != test.start || names(plan.Keep) != test.keep || names(plan.Stop) != test.stop {
				t.Errorf("start %q, keep %q, stop %q", names(plan.Start), names(plan.Keep), names(plan.Stop))
			}
			s := plan.Status
			if got := fmt.Sprintf("%d/%d/%d/%d of %d",
				s.Pulling, s.Succeeded, s.Failed, s.Waiting, s.Desired); got != test.counts {
				t.Errorf("status %s", got)
			}
			if s.FirstSyncStatus == nil || (s.ImageStatuses == nil) != (s.Pulling+s.Succeeded+s.Failed+s.Waiting == 0) {
				t.Error(jsonOf(s))
			}
			n.Status = s
			again := imagepull.Work(n, append(plan.Keep, plan.Start...))
			if len(again.Start) > 0 {
				t.Errorf("started twice: %s", names(again.Start))
			}
			if diff := cmp.Diff(s, again.Status); diff != "" {
				t.Errorf("status, again (-first +second):\n%s", diff)
			}
		})
	}
}

// What is asked for may change while a pull runs, without a new round.
func TestWorkRefreshes(t *testing.T) {
	n := nodeImage("n1", lists("nginx:2", 0), lists("nginx:1", 0))
	i := n.Spec.Images["nginx"]
	i.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}}
	n.Spec.Images["nginx"] = i
	first := imagepull.Work(n, nil).Start
	first[0].Sandbox.Annotations["mine"] = "x"
	if len(first[1].Sandbox.Annotations) != 2 || len(i.SandboxConfig.Annotations) != 1 {
		t.Error("pulls share annotations")
	}
	want := v1beta1.SandboxConfig{
		Labels:      map[string]string{"a": "b"},
		Annotations: map[string]string{"c": "d", "apps.kruise.io/pulling-image-by": "kruise-daemon"},
	}
	if diff := cmp.Diff(want, first[1].Sandbox); diff != "" {
		t.Errorf("sandbox (-want +got):\n%s", diff)
	}
	secretsOf("nginx", v1beta1.ReferenceObject{Name: "late"})(n)
	limits(seconds(7), nil, nil)(n)
	for _, p := range imagepull.Work(n, first).Keep {
		if len(p.Secrets) != 1 || p.Reference.Tag == "2" && *p.Tag.PullPolicy.TimeoutSeconds != 7 {
			t.Errorf("%s has %v, %s", p.Reference, p.Secrets, jsonOf(p.Tag.PullPolicy))
		}
	}
}
