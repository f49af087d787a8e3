//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// phase waits for a phase of an object.
func (s *soak) phase(ctx context.Context, kind, name, want string) error {
	return s.shows(ctx, kindOf(ours, kind), name, func(u *unstructured.Unstructured) error {
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase != want {
			return fmt.Errorf("phase %q, want %q", phase, want)
		}
		return nil
	})
}

// broadcasts runs a job on all nodes to its end.
func (s *soak) broadcasts(ctx context.Context) error {
	job := kindOf(ours, "BroadcastJob")
	if err := s.apply(ctx, "broadcastjob"); err != nil {
		return err
	}
	if err := s.phase(ctx, job.Kind, "check-disks", "completed"); err != nil {
		return err
	}
	if err := s.settles(ctx, job, "check-disks", map[string]int64{
		"desired": nodes, "succeeded": nodes, "failed": 0,
	}); err != nil {
		return err
	}
	return s.gone(ctx, job, "check-disks")
}

// schedules waits until both AdvancedCronJobs have created a job since this moment.
func (s *soak) schedules(ctx context.Context) error {
	begin := time.Now().Truncate(time.Second)
	for _, name := range []string{"report", "cleanup"} {
		if err := s.shows(ctx, advancedCronJob, name, func(u *unstructured.Unstructured) error {
			text, _, _ := unstructured.NestedString(u.Object, "status", "lastScheduleTime")
			last, err := time.Parse(time.RFC3339, text)
			if err == nil && last.Before(begin) {
				err = errors.New("no job since " + text)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// pulls has a job pull its images, and deletes the job.
func (s *soak) pulls(sample, kind, name string, want int64) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.apply(ctx, sample); err != nil {
			return err
		}
		if err := s.settles(ctx, kindOf(ours, kind), name, map[string]int64{"desired": want, "succeeded": want}); err != nil {
			return err
		}
		return s.gone(ctx, kindOf(ours, kind), name)
	}
}

// recreates restarts containers of a pod in order.
func (s *soak) recreates(ctx context.Context) error {
	request := kindOf(ours, "ContainerRecreateRequest")
	restarts := func() (int32, error) {
		pod := &corev1.Pod{}
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "web"}, pod)
		return statuses(pod)["nginx"].RestartCount + statuses(pod)["log"].RestartCount, err
	}
	before, err := restarts()
	if err != nil {
		return err
	}
	if err := s.apply(ctx, "containerrecreaterequest"); err != nil {
		return err
	}
	if err := s.phase(ctx, request.Kind, "web-again", "Completed"); err != nil {
		return err
	}
	if after, err := restarts(); err != nil || after != before+2 {
		return fmt.Errorf("%d containers restarted, %w", after-before, err)
	}
	if err := s.gone(ctx, request, "web-again"); err != nil {
		return err
	}
	// Another pod, for kubelets wait longer and longer before they start the same container again.
	if err := s.try(ctx, func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
		return client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	}); err != nil {
		return err
	}
	if err := s.apply(ctx, "pod"); err != nil {
		return err
	}
	return until(ctx, func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "web"}, pod); err != nil {
			return err
		}
		if !ready(pod) {
			return fmt.Errorf("pod web is %s", pod.Status.Phase)
		}
		return nil
	})
}

// looksAround runs an ephemeral container in each of three new pods to its end.
func (s *soak) looksAround(ctx context.Context) error {
	job := kindOf(ours, "EphemeralJob")
	if err := s.apply(ctx, "ephemeraljob"); err != nil {
		return err
	}
	// Ephemeral containers stay in their pods, so each turn has pods of its own.
	if err := s.patch(ctx, deployment, "idle",
		fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"turn":%q}}}}}`, time.Now())); err != nil {
		return err
	}
	if err := s.settles(ctx, deployment, "idle", map[string]int64{
		"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3,
	}); err != nil {
		return err
	}
	if err := s.settles(ctx, job, "look-around", map[string]int64{"match": 3}); err != nil {
		return err
	}
	if err := s.patch(ctx, job, "look-around", `{"spec":{"paused":false}}`); err != nil {
		return err
	}
	if err := s.settles(ctx, job, "look-around", map[string]int64{"match": 3, "succeeded": 3}); err != nil {
		return err
	}
	return s.gone(ctx, job, "look-around")
}

// marks runs commands in the pod of a game, whose label and readiness follow.
func (s *soak) marks(ctx context.Context) error {
	for _, step := range []struct{ command, want string }{{"touch", "no"}, {"rm", "yes"}} {
		begin := time.Now()
		if err := s.try(ctx, func(ctx context.Context) error {
			_, err := s.Kubectl(ctx, "exec", "-n", s.namespace, "game", "-c", "server", "--", step.command, "/tmp/players")
			return err
		}); err != nil {
			return err
		}
		if err := until(ctx, func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "game"}, pod); err != nil {
				return err
			}
			if pod.Labels["idle"] != step.want || ready(pod) != (step.want == "yes") {
				return fmt.Errorf("the pod has %v, and is ready: %t", pod.Labels, ready(pod))
			}
			return nil
		}); err != nil {
			return err
		}
		if !s.killedSince(begin.Add(-time.Minute)) {
			s.report.longest("until a label followed a command, without kills", time.Since(begin))
		}
	}
	return nil
}

// distributes creates a namespace, into which a Secret is copied, and changes the Secret.
func (s *soak) distributes(ctx context.Context) error {
	distribution := kindOf(ours, "ResourceDistribution")
	begin := time.Now()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "soak-", Labels: map[string]string{"team": "web"},
	}}
	if err := s.try(ctx, func(ctx context.Context) error { return s.Client.Create(ctx, namespace) }); err != nil {
		return err
	}
	copied := func(user string) error {
		return until(ctx, func(ctx context.Context) error {
			secret := &corev1.Secret{}
			if err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace.Name, Name: "registry"}, secret); err != nil {
				return err
			}
			if user != "" && string(secret.Data["user"]) != user {
				return fmt.Errorf("the copy has %q", secret.Data["user"])
			}
			return nil
		})
	}
	if err := copied(""); err != nil {
		return err
	}
	if !s.killedSince(begin.Add(-time.Minute)) {
		s.report.longest("until a new namespace had its Secret, without kills", time.Since(begin))
	}
	user := fmt.Sprintf("user-%d", begin.Unix())
	if err := s.patch(ctx, distribution, "registry",
		fmt.Sprintf(`{"spec":{"resource":{"stringData":{"user":%q}}}}`, user)); err != nil {
		return err
	}
	if err := copied(user); err != nil {
		return err
	}
	return s.try(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(s.Client.Delete(ctx, namespace)) })
}
