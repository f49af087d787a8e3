//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// killUntil ends a random process of the deployment again and again: the leader, the other replica, or a daemon, with
// SIGKILL or by the deletion of its pod. Between two of them the deployment becomes complete again.
func (s *soak) killUntil(ctx context.Context, t *testing.T, until time.Time) {
	t.Helper()
	for time.Now().Before(until) && pause(ctx, s.between(20*time.Second, 60*time.Second)) {
		pod, program, role := s.victim(t)
		s.measure(ctx, "before a kill")
		s.logged(ctx, pod)
		s.mu.Lock()
		s.killed = time.Now()
		s.mu.Unlock()
		how := "SIGKILL"
		if s.draw(3) == 0 {
			how = "deletion"
			if err := s.Client.Delete(ctx,
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: pod}}); err != nil {
				t.Errorf("delete %s: %v", pod, err)
			}
		} else {
			s.killProcess(t, pod, program)
			s.remove(t, pod)
		}
		s.report.count("kills", role+" by "+how)
		begin := time.Now()
		t.Logf("%s: the %s ends by %s", begin.Format(time.TimeOnly), role, how)
		eventually(t, func(ctx context.Context) error { return s.complete(ctx, t) })
		s.report.longest("complete again after a kill of the "+role, time.Since(begin))
		s.countLeader(t)
		s.mu.Lock()
		s.killed = time.Now()
		s.mu.Unlock()
	}
}

// killedSince reports whether a replica or a daemon was missing at some moment since then.
func (s *soak) killedSince(begin time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed.After(begin)
}

// victim draws a process.
func (s *soak) victim(t *testing.T) (pod, program, role string) {
	t.Helper()
	// Beside another release, leadership is what changes.
	if len(s.managers) == 1 && s.draw(3) == 0 {
		daemons := s.daemons(t)
		return daemons[s.draw(len(daemons))].Name, "kruise-daemon", "daemon"
	}
	leader := s.leader(t)
	if s.draw(2) == 0 || len(s.managers) > 1 && s.draw(2) == 0 {
		return leader, "kruise-manager", "leader"
	}
	for _, p := range s.serving(t) {
		if p.Name != leader {
			return p.Name, "kruise-manager", "other replica"
		}
	}
	return leader, "kruise-manager", "leader"
}

// complete reports why the deployment is not complete: two ready replicas, of which one leads, and a ready daemon on
// each node.
func (s *soak) complete(ctx context.Context, t *testing.T) error {
	t.Helper()
	if err := s.ready(ctx); err != nil {
		return err
	}
	var d appsv1.DaemonSet
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: system, Name: "kruise-daemon"}, &d); err != nil {
		return err
	}
	if d.Status.NumberAvailable != nodes {
		return fmt.Errorf("%d daemons are available", d.Status.NumberAvailable)
	}
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(system)); err != nil {
		return err
	}
	holder := s.holder(ctx, t)
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp != nil || !ready(p) {
			return fmt.Errorf("%s is not ready, or is going", p.Name)
		} else if strings.HasPrefix(holder, p.Name+"_") {
			holder = ""
		}
	}
	if holder != "" {
		return fmt.Errorf("the lease is held by %q, which is gone", holder)
	}
	return nil
}
