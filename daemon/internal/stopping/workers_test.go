package stopping_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/test/bubbletest"
)

// story is what happens, with the second in which it does. It is a runtime, and takes events too.
type story struct {
	mu    sync.Mutex
	began time.Time
	lines []string

	exec func(context.Context) (cri.Output, error)
	stop func(context.Context) error
}

func (s *story) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%2.0f %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...)))
}

// told is what has happened so far.
func (s *story) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func (s *story) Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error) {
	s.say("exec in %s: %s", id, strings.Join(c.Args, " "))
	if s.exec == nil {
		return cri.Output{}, nil
	}
	return s.exec(ctx)
}

func (s *story) Stop(ctx context.Context, id string, grace time.Duration) error {
	s.say("stop %s within %s", id, grace)
	if s.stop == nil {
		return nil
	}
	return s.stop(ctx)
}

func (s *story) event(about *corev1.ObjectReference, eventType, reason, text string) {
	s.say("%s %s at %s/%s %s: %s", eventType, reason, about.Namespace, about.Name, about.FieldPath, text)
}

// workers works in the bubble of a test until the test ends.
func (s *story) workers(t *testing.T, most int, r prometheus.Registerer) (c *stopping.Workers[string], quit func()) {
	t.Helper()
	s.began = time.Now()
	c, err := stopping.New(stopping.Options{By: "test", Most: most, Event: s.event, Registerer: r, Now: time.Now},
		func(k string) { s.say("%s is over", k) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Work(ctx); err != nil {
			t.Error(err)
		}
	}()
	return c, sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

func (s *story) order(grace time.Duration, h *containerrestart.Hook) stopping.Order {
	return stopping.Order{
		Kill: containerrestart.Kill{
			Container: "app", ContainerID: "containerd://4f2a", Grace: grace, Hook: h, Text: "Stopping container app",
		},
		Runtime: s,
		Object:  stopping.ContainerOf(containerrestart.Pod{Namespace: "shop", Name: "web", UID: "u1"}, nil, "app"),
	}
}

// after is a call that takes so long.
func after(d time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func execAfter(d time.Duration, code int32, err error) func(context.Context) (cri.Output, error) {
	wait := after(d, err)
	return func(ctx context.Context) (cri.Output, error) {
		err := wait(ctx)
		return cri.Output{ExitCode: code}, err
	}
}

const killing = " 0 Normal Killing at shop/web spec.containers{app}: Stopping container app"

func TestSequence(t *testing.T) {
	drain := &containerrestart.Hook{Exec: []string{"drain", "it"}}
	tests := map[string]struct {
		grace time.Duration
		hook  *containerrestart.Hook
		exec  func(context.Context) (cri.Output, error)
		stop  func(context.Context) error
		want  []string
		err   string
	}{
		"without a hook the whole grace is for stopping": {
			grace: 30 * time.Second,
			want:  []string{killing, " 0 stop 4f2a within 30s", " 0 k is over"},
		},
		"a hook takes from the grace": {
			grace: 30 * time.Second, hook: drain, exec: execAfter(8*time.Second, 0, nil),
			want: []string{killing, " 0 exec in 4f2a: drain it", " 8 stop 4f2a within 22s", " 8 k is over"},
		},
		"a hook is cut by the end of the grace, and two seconds are left": {
			grace: 3 * time.Second, hook: drain, exec: execAfter(time.Minute, 0, nil),
			want: []string{killing, " 0 exec in 4f2a: drain it", " 3 stop 4f2a within 2s", " 3 k is over"},
		},
		"a hook that sleeps": {
			grace: 30 * time.Second, hook: &containerrestart.Hook{Sleep: ptr.To(5 * time.Second)},
			want: []string{killing, " 5 stop 4f2a within 25s", " 5 k is over"},
		},
		"a hook that sleeps for longer than the grace": {
			grace: 3 * time.Second, hook: &containerrestart.Hook{Sleep: ptr.To(time.Hour)},
			want: []string{killing, " 3 stop 4f2a within 2s", " 3 k is over"},
		},
		"no grace, no hook": {
			hook: drain,
			want: []string{killing, " 0 stop 4f2a within 2s", " 0 k is over"},
		},
		"a hook that fails is reported, and changes nothing": {
			grace: 30 * time.Second, hook: drain, exec: execAfter(0, 3, nil),
			want: []string{
				killing, " 0 exec in 4f2a: drain it",
				" 0 Warning FailedPreStopHook at shop/web spec.containers{app}: PreStopHook failed: " +
					"the command ended with exit code 3",
				" 0 stop 4f2a within 30s", " 0 k is over",
			},
		},
		"a hook that cannot run at all; the container goes by its name": {
			grace: 30 * time.Second,
			hook:  drain,
			exec:  execAfter(0, 0, errors.New(`run a command in container "4f2a": no such file`)),
			want: []string{
				killing, " 0 exec in 4f2a: drain it",
				` 0 Warning FailedPreStopHook at shop/web spec.containers{app}: PreStopHook failed: run a command in container "app": no such file`,
				" 0 stop 4f2a within 30s", " 0 k is over",
			},
		},
		"a hook that is none": {
			grace: 30 * time.Second, hook: &containerrestart.Hook{Err: errors.New("the hook has no handler that can run")},
			want: []string{
				killing,
				" 0 Warning FailedPreStopHook at shop/web spec.containers{app}: PreStopHook failed: " +
					"the hook has no handler that can run",
				" 0 stop 4f2a within 30s", " 0 k is over",
			},
		},
		"what cannot be stopped": {
			grace: 9 * time.Second, stop: after(time.Second, errors.New("it does not stop")),
			want: []string{killing, " 0 stop 4f2a within 9s", " 1 k is over"},
			err:  "it does not stop",
		},
		"what is gone needs no stopping": {
			grace: 9 * time.Second, stop: after(0, cri.ErrNotFound),
			want: []string{killing, " 0 stop 4f2a within 9s", " 0 k is over"},
		},
		"a runtime that stays away": {
			grace: 4 * time.Second, stop: after(9*time.Second, cri.ErrUnavailable),
			want: []string{
				killing, " 0 stop 4f2a within 4s", "10 stop 4f2a within 2s", "20 stop 4f2a within 2s", "30 stop 4f2a within 2s",
				"39 k is over",
			},
			err: "container runtime unavailable",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubbletest.Test(t, func(t *testing.T) {
				s := &story{exec: tt.exec, stop: tt.stop}
				workers, quit := s.workers(t, 1, nil)
				defer quit()
				workers.Begin(t.Context(), "k", s.order(tt.grace, tt.hook))
				for !workers.Known()["k"].Done {
					time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
				}
				if diff := cmp.Diff(tt.want, s.told()); diff != "" {
					t.Errorf("it goes otherwise (-want +got):\n%s", diff)
				}
				if err := workers.Known()["k"].Err; (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
					t.Errorf("error %v, want %q", err, tt.err)
				}
			})
		})
	}
}

// TestRuntimeComesBack has a runtime restart while it stops a container: that is no failure.
func TestRuntimeComesBack(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &story{}
		s.stop = func(context.Context) error {
			if time.Since(s.began) < 6*time.Second {
				return cri.ErrUnavailable
			}
			return nil
		}
		workers, quit := s.workers(t, 1, nil)
		defer quit()
		workers.Begin(t.Context(), "k", s.order(20*time.Second, nil))
		time.Sleep(10 * time.Second) //nolint:forbidigo // the time of the bubble
		if got := workers.Known()["k"]; !got.Done || got.Err != nil {
			t.Errorf("got %+v\n%s", got, strings.Join(s.told(), "\n"))
		}
		lines := s.told()
		if last := lines[len(lines)-2]; last != " 6 stop 4f2a within 14s" {
			t.Errorf("what is left of the grace is another time: %s", last)
		}
	})
}

func TestForget(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &story{exec: execAfter(time.Hour, 0, nil)}
		workers, quit := s.workers(t, 1, nil)
		defer quit()
		hook := &containerrestart.Hook{Exec: []string{"drain"}}
		workers.Begin(t.Context(), "first", s.order(2*time.Hour, hook))
		bubbletest.Wait()
		workers.Begin(t.Context(), "second", s.order(2*time.Hour, hook))
		workers.Begin(t.Context(), "third", s.order(2*time.Hour, hook))
		bubbletest.Wait()
		workers.Forget("second") // it has not begun
		bubbletest.Wait()
		if got := workers.Known(); len(got) != 2 || got["first"].Done || got["third"].Done {
			t.Errorf("after the second was given up: %+v", got)
		}
		workers.Forget("first")
		bubbletest.Wait()
		workers.Forget("third") // its turn has come since
		bubbletest.Wait()
		if got := workers.Known(); len(got) > 0 {
			t.Errorf("after all were given up: %+v", got)
		}
		want := []string{
			killing, " 0 exec in 4f2a: drain", " 0 second is over", " 0 first is over", killing, " 0 exec in 4f2a: drain",
			" 0 third is over",
		}
		if diff := cmp.Diff(want, s.told()); diff != "" {
			t.Errorf("it goes otherwise (-want +got):\n%s", diff)
		}
	})
}

// TestEndHasNoOutcome ends the process: what it was doing has neither succeeded nor failed.
func TestEndHasNoOutcome(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &story{stop: after(time.Hour, nil)}
		workers, quit := s.workers(t, 1, nil)
		workers.Begin(t.Context(), "k", s.order(2*time.Hour, nil))
		bubbletest.Wait()
		quit()
		if got, ok := workers.Known()["k"]; !ok || got.Done {
			t.Errorf("got %+v, %v", got, ok)
		}
	})
}

// TestBound has more orders than are carried out at once. They take turns, and those that are moot by then do nothing.
func TestBound(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &story{stop: after(10*time.Second, nil)}
		workers, quit := s.workers(t, 2, nil)
		defer quit()
		for _, k := range []string{"a", "b", "c", "d", "a"} {
			o := s.order(20*time.Second, nil)
			o.Kill.ContainerID = "containerd://" + k
			o.Moot = func(context.Context) bool { return k == "c" && time.Since(s.began) > time.Second }
			workers.Begin(t.Context(), k, o)
			bubbletest.Wait()
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the time of the bubble
		stops := map[string]string{}
		for _, line := range s.told() {
			if second, rest, _ := strings.Cut(line, " stop "); rest != "" {
				stops[rest[:1]] += strings.TrimSpace(second)
			}
		}
		if diff := cmp.Diff(map[string]string{"a": "0", "b": "0", "d": "10"}, stops); diff != "" {
			t.Errorf("stopped at (-want +got):\n%s", diff)
		}
		if got := workers.Known(); !got["c"].Done || got["c"].Err != nil {
			t.Errorf("what was moot: %+v", got["c"])
		}
	})
}

// A panic in the stop of a container fails that order, and no other.
func TestPanicOfAStop(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := &story{stop: func(context.Context) error { panic("an odd container") }}
		workers, quit := s.workers(t, 1, nil)
		defer quit()
		workers.Begin(t.Context(), "odd", s.order(time.Second, nil))
		bubbletest.Wait()
		s.stop = nil
		workers.Begin(t.Context(), "plain", s.order(time.Second, nil))
		bubbletest.Wait()
		known := workers.Known()
		if odd := known["odd"]; !odd.Done || odd.Err == nil || odd.Err.Error() != "stop container: panic: an odd container" {
			t.Errorf("%+v", odd)
		}
		if plain := known["plain"]; !plain.Done || plain.Err != nil {
			t.Errorf("%+v", plain)
		}
	})
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	bubbletest.Test(t, func(t *testing.T) {
		s := &story{exec: execAfter(0, 1, nil)}
		workers, quit := s.workers(t, 1, registry)
		defer quit()
		workers.Begin(t.Context(), "k", s.order(time.Minute, &containerrestart.Hook{Exec: []string{"drain"}}))
		bubbletest.Wait()
		s.stop = func(context.Context) error { return errors.New("it does not stop") }
		workers.Begin(t.Context(), "l", s.order(time.Minute, &containerrestart.Hook{Sleep: ptr.To(time.Hour)}))
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the time of the bubble
	})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"kruise_daemon_container_stops_total test failed":    1,
		"kruise_daemon_container_stops_total test stopped":   1,
		"kruise_daemon_prestop_hooks_total test exec failed": 1,
		"kruise_daemon_prestop_hooks_total test sleep cut":   1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}
