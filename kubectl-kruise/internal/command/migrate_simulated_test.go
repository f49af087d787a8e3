//go:build simulated

package command_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// A workload of Kubernetes becomes one of apps.kruise.io, beside the controllers of both, and its pods stay.
func TestMigrateKeepsPods(t *testing.T) {
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{Level: cluster.Simulated, CRDDirs: []string{apitest.CRDs()}, Scheme: scheme})
	b := podbench.On(t, c, scheme)
	b.Run(func(mgr ctrl.Manager, cached client.WithWatch) error {
		clones, err := cloneset.New(cached, cloneset.Options{})
		if err != nil {
			return err
		}
		if err := clones.SetupWithManager(t.Context(), mgr, controller.Options{}); err != nil {
			return err
		}
		sets, err := statefulset.New(cached, statefulset.Options{})
		if err != nil {
			return err
		}
		return sets.SetupWithManager(t.Context(), mgr, controller.Options{})
	})
	const template = `spec: {replicas: 3, selector: {matchLabels: {app: NAME}},
		template: {metadata: {labels: {app: NAME}}, spec: {containers: [{name: app, image: "app:1"}]}}}}`
	for name, row := range map[string]struct {
		source string
		args   []string
		target client.Object
	}{
		"web": {
			source: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, " + template,
			args:   []string{"migrate", "CloneSet", "--from", "Deployment", "--in-place"}, target: &v1beta1.CloneSet{},
		},
		"db": { // whose ordinals begin at 5, while the feature gate is off
			source: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, " + strings.Replace(template, "{replicas",
				"{persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}, ordinals: {start: 5}, replicas", 1),
			args: []string{"migrate", "StatefulSet", "--from", "StatefulSet"}, target: &v1beta1.StatefulSet{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := object(t, "v1beta1", strings.ReplaceAll(row.source, "NAME", name))
			source.SetNamespace(b.Namespace)
			if err := b.Client.Create(t.Context(), source); err != nil {
				t.Fatal(err)
			}
			var before map[types.UID]string
			b.Until(func() error {
				before = readyPods(t, b, name)
				if len(before) != 3 {
					return fmt.Errorf("%d pods are ready", len(before))
				}
				return nil
			})
			args := append(slices.Clone(row.args), "--src-name", name, "-n", b.Namespace, "--interval=100ms",
				"--timeout-seconds=120")
			b.Until(func() error { // its status is written after that of the pods
				return apitest.RunConfig(t, command.New, c.Kubeconfig, append(args, "--dry-run=server")...).Err
			})
			if got := apitest.RunConfig(t, command.New, c.Kubeconfig, args...); got.Err != nil {
				t.Fatalf("%v %s", got.Err, got.ErrOut)
			}
			row.target.SetName(name)
			row.target.SetNamespace(b.Namespace)
			b.Until(func() error {
				if err := b.Look(row.target); err != nil {
					return err
				}
				if updated := updatedReplicas(row.target); updated != 3 {
					return fmt.Errorf("%d pods are updated", updated)
				}
				return nil
			})
			b.Still()
			after := readyPods(t, b, name)
			if !maps.Equal(before, after) {
				t.Errorf("pods before %v, after %v", before, after)
			}
		})
	}
}

func updatedReplicas(o client.Object) int32 {
	switch o := o.(type) {
	case *v1beta1.CloneSet:
		return o.Status.UpdatedReplicas
	case *v1beta1.StatefulSet:
		return o.Status.UpdatedReplicas
	default:
		return 0
	}
}

// readyPods returns the names of the ready pods of a workload.
func readyPods(t *testing.T, b *podbench.Bench, app string) map[types.UID]string {
	t.Helper()
	var list corev1.PodList
	of := client.MatchingLabels{"app": app}
	if err := b.Client.List(t.Context(), &list, client.InNamespace(b.Namespace), of); err != nil {
		t.Fatal(err)
	}
	ready := map[types.UID]string{}
	for i := range list.Items {
		if podutils.IsPodReady(&list.Items[i]) {
			ready[list.Items[i].UID] = list.Items[i].Name
		}
	}
	return ready
}
