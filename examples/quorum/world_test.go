package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/operatortest"
)

// world is the operator over objects in memory.
type world struct {
	*testing.T
	*objects.Model

	db *Database
	// pods and claims are those of the server, by name. Once all members serve, a majority does.
	pods        map[string]*corev1.Pod
	claims      map[string]*corev1.PersistentVolumeClaim
	established bool
	// elected is the member that is updated last; empty for none.
	elected string

	// process is the operator.
	process *podbench.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, Model: objects.NewModel(t, &DatabaseList{}, addToScheme),
		pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{},
	}
	w.db = &Database{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	w.db.SetGroupVersionKind(kind())
	w.db.Spec.Members, w.db.Spec.Template = 5, operatortest.Template("db:1")
	w.process = &podbench.Process{Server: w.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
		return newReconciler(c, w.Server, w.Now)
	}}
	w.Reconciler = w.process
	w.Server.OnChange(w.changed)
	w.Put(w.db)
	w.Eventually(w.unsettled("1"))
	w.established = true
	return w
}

// elect has the database elect a member.
func (w *world) elect(member string) {
	w.elected = member
	w.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		after := pod.DeepCopy()
		delete(after.Labels, electedLabel)
		if pod.Labels[memberLabel] == member {
			after.Labels[electedLabel] = "true"
		}
		return after
	})
}

// changed holds after each write: a pod has its claim, a majority serves, and the elected member is the last.
func (w *world) changed(before, after client.Object) {
	switch gone := before.(type) {
	case *corev1.Pod:
		delete(w.pods, gone.Name)
	case *corev1.PersistentVolumeClaim:
		delete(w.claims, gone.Name)
	}
	switch o := after.(type) {
	case *corev1.PersistentVolumeClaim:
		w.claims[o.Name] = o
	case *corev1.Pod:
		w.pods[o.Name] = o
		if volumes := o.Spec.Volumes; len(volumes) != 1 || w.claims[volumes[0].PersistentVolumeClaim.ClaimName] == nil {
			w.Errorf("%s has no claim", o.Name)
		}
	}
	serving := int32(0)
	for _, pod := range w.pods {
		if operatortest.Serves(pod) {
			serving++
		}
	}
	if w.established && serving < w.db.Spec.Members/2+1 {
		w.Errorf("%d members serve", serving)
	}
	elected := w.pods["db-"+w.elected]
	if elected == nil || operatortest.Tag(elected) == "1" && operatortest.Serves(elected) {
		return
	}
	for _, pod := range w.pods {
		if pod != elected && (operatortest.Tag(pod) == "1" || !operatortest.Serves(pod)) {
			w.Errorf("%s is not updated, and the elected %s is", pod.Name, elected.Name)
		}
	}
}

// unsettled returns what is not yet as the database asks for.
func (w *world) unsettled(version string) func() error {
	return func() error {
		w.Look(w.db)
		pods := w.Pods()
		if want := w.db.Spec.Members; len(pods) != int(want) || w.db.Status.Ready != want {
			return fmt.Errorf("%d pods, %d are ready, want %d", len(pods), w.db.Status.Ready, want)
		}
		for _, pod := range pods {
			revision := pod.Labels[kruise.PodRevisionLabelKey]
			if !operatortest.Serves(pod) || operatortest.Tag(pod) != version || revision != w.db.Status.CurrentRevision {
				return fmt.Errorf("pod %s has %s of %s", pod.Name, operatortest.Tag(pod), revision)
			}
		}
		return nil
	}
}

// TestSetup adds the operator to a manager that is not started.
func TestSetup(t *testing.T) { operatortest.Setup(t, add) }

// TestDefinition reads database.yaml, which has all fields of the type.
func TestDefinition(t *testing.T) {
	w := newWorld(t)
	w.db.Status.Message = "waits"
	operatortest.Definition(t, "database.yaml", kind(), w.db)
}
