//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// A schedule of each kind of children runs them to their ends: a Job, a pod on each node, and a pull.
func (m *deployed) testCron(t *testing.T) {
	namespace, once := m.Namespace(t), m.Push(t, image.Spec{Name: "cron/once:1", Entrypoint: []string{"true"}})
	pods := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: once.Name}},
	}}
	templates := map[v1beta1.TemplateKind]v1beta1.CronJobTemplate{
		v1beta1.JobTemplate: {JobTemplate: &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pods}}},
		v1beta1.BroadcastJobTemplate: {
			BroadcastJobTemplate: &v1beta1.BroadcastJobTemplateSpec{Spec: v1beta1.BroadcastJobSpec{Template: pods}},
		},
		v1beta1.ImageListPullJobTemplate: {
			ImageListPullJobTemplate: &v1beta1.ImageListPullJobTemplateSpec{
				Spec: v1beta1.ImageListPullJobSpec{Images: []string{once.Name}},
			},
		},
	}
	crons := map[v1beta1.TemplateKind]*v1beta1.AdvancedCronJob{}
	for kind, template := range templates {
		cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: strings.ToLower(string(kind)),
		}}
		cron.Spec = v1beta1.AdvancedCronJobSpec{
			Schedule: "@every 2s", ConcurrencyPolicy: v1beta1.ForbidConcurrent, Template: template,
		}
		if err := m.Client.Create(t.Context(), cron); err != nil {
			t.Fatal(err)
		}
		crons[kind] = cron
	}
	ended := map[v1beta1.TemplateKind]func(context.Context) (int, error){
		v1beta1.JobTemplate: func(ctx context.Context) (n int, err error) {
			var list batchv1.JobList
			err = m.Client.List(ctx, &list, client.InNamespace(namespace))
			for i := range list.Items {
				n += int(list.Items[i].Status.Succeeded)
			}
			return n, err
		},
		v1beta1.BroadcastJobTemplate: func(ctx context.Context) (n int, err error) {
			var list v1beta1.BroadcastJobList
			err = m.Client.List(ctx, &list, client.InNamespace(namespace))
			for i := range list.Items {
				if list.Items[i].Status.Succeeded == 3 {
					n++
				}
			}
			return n, err
		},
		v1beta1.ImageListPullJobTemplate: func(ctx context.Context) (n int, err error) {
			var list v1beta1.ImageListPullJobList
			err = m.Client.List(ctx, &list, client.InNamespace(namespace))
			for i := range list.Items {
				n += int(list.Items[i].Status.Succeeded)
			}
			return n, err
		},
	}
	for kind, cron := range crons {
		eventually(t, func(ctx context.Context) error {
			if n, err := ended[kind](ctx); err != nil || n < 2 {
				return fmt.Errorf("%d children of %s have ended: %w", n, cron.Name, err)
			}
			return nil
		})
		pause := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`))
		if err := m.Client.Patch(t.Context(), cron, pause); err != nil {
			t.Fatal(err)
		}
	}
	printed, err := m.Kubectl(t.Context(), "get", "advancedcronjobs", "-n", namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kubectl get advancedcronjobs:\n%s", printed)
	for line := range strings.SplitSeq(strings.TrimSpace(printed), "\n") {
		fields := strings.Fields(line)
		if last := fields[len(fields)-1]; fields[0] == "NAME" && last != "AGE" ||
			fields[0] != "NAME" && (len(fields) != 6 || !strings.EqualFold(fields[0], fields[3])) {
			t.Errorf("kubectl prints %q", line)
		}
	}
}
