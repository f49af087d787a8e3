package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
	"github.com/kruisekit/kruisekit/revision"
)

// versions are those that an API server may serve.
func versions() []string { return []string{"v1alpha1", "v1beta1"} }

// object reads an object, in which VERSION is replaced.
func object(t *testing.T, version, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "VERSION", version)), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const cloneSet = `
apiVersion: apps.kruise.io/VERSION
kind: CloneSet
metadata: {name: web, namespace: default, uid: web, generation: 4}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, extra: label}}
    spec:
      containers:
      - {name: app, image: "app:2", ports: [{containerPort: 80}], env: [{name: A, value: a}]}
      - {name: log, image: "log:1"}
status: {observedGeneration: 4, replicas: 3, updatedReplicas: 3, readyReplicas: 3, updateRevision: web-2}
`

// stored returns a revision of the CloneSet with an image.
func stored(t *testing.T, number int64, image string) *appsv1.ControllerRevision {
	t.Helper()
	data, err := revision.Encode(&corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", number), Namespace: "default", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: types.UID("web"),
				Controller: ptr.To(true),
			}},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
}

// row is a command against an API server, and what it does.
type row struct {
	objects []string
	args    string
	out     string // part of the output
	err     string // part of the error
	writes  []string
	version string // the only one that the row is about
}

// try runs rows against servers of both versions. In what is written VERSION is replaced.
func try(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, r := range rows {
		for _, version := range versions() {
			if r.version != "" && r.version != version {
				continue
			}
			t.Run(name+" "+version, func(t *testing.T) {
				server := apitest.New(t, version, stored(t, 1, "app:1"), stored(t, 2, "app:2"))
				for _, text := range r.objects {
					server.Put(t, object(t, version, text))
				}
				got := server.Run(t, command.New, strings.Fields(r.args)...)
				if (got.Err != nil) != (r.err != "") || got.Err != nil && !strings.Contains(got.Err.Error(), r.err) {
					t.Errorf("error %v, want %q", got.Err, r.err)
				}
				if out := strings.ReplaceAll(r.out, "VERSION", version); !strings.Contains(got.Out+got.ErrOut, out) {
					t.Errorf("output %q %q, want %q", got.Out, got.ErrOut, out)
				}
				var want []string
				for _, w := range r.writes {
					want = append(want, strings.ReplaceAll(w, "VERSION", version))
				}
				if diff := cmp.Diff(want, got.Writes); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRollout(t *testing.T) {
	web := []string{cloneSet}
	try(t, map[string]row{
		"history lists the revisions": {
			objects: web, args: "rollout history cloneset/web",
			out: "cloneset.apps.kruise.io/web \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>\n",
		},
		"history describes the template of one revision": {
			objects: web, args: "rollout history cloneset/web --revision=1",
			out: "cloneset.apps.kruise.io/web with revision #1\nPod Template:\n  Labels:\tapp=web\n",
		},
		"undo replaces the template, so that keys go which the revision lacks": {
			objects: web, args: "rollout undo cloneset/web", out: "cloneset.apps.kruise.io/web rolled back",
			writes: []string{`PATCH clonesets/web [{"op":"test","path":"/metadata/generation","value":4},` +
				`{"op":"replace","path":"/spec/template","value":{"metadata":{"labels":{"app":"web"}},` +
				`"spec":{"containers":[{"image":"app:1","name":"app","resources":{}}]}}}]`},
		},
		"undo to a revision that is missing": {
			objects: web, args: "rollout undo cloneset/web --to-revision=7",
			err: "unable to find specified revision 7 in history",
		},
		"undo writes nothing for a dry run of the client": {
			objects: web, args: "rollout undo cloneset/web --dry-run=client", out: "will roll back to Pod Template:",
		},
		"pause has another path in v1alpha1": {
			version: "v1alpha1", objects: web, args: "rollout pause cloneset/web", out: "cloneset.apps.kruise.io/web paused",
			writes: []string{`PATCH clonesets/web [{"op":"add","path":"/spec/updateStrategy","value":{"paused":true}}]`},
		},
		"pause": {
			version: "v1beta1", objects: web, args: "rollout pause cloneset web", out: "cloneset.apps.kruise.io/web paused",
			writes: []string{`PATCH clonesets/web [{"op":"add","path":"/spec/updateStrategy",` +
				`"value":{"rollingUpdate":{"paused":true}}}]`},
		},
		"resume of what is not paused": {objects: web, args: "rollout resume cloneset/web", err: "is not paused"},
		"pause of a kind that cannot": {
			objects: []string{
				"{apiVersion: apps.kruise.io/VERSION, kind: UnitedDeployment, metadata: {name: u, namespace: default}}",
			},
			args: "rollout pause ud/u", err: "pausing is not supported",
		},
		"restart of what is missing": {args: "rollout restart cloneset/missing", err: "NotFound"},
		"status": {
			objects: web, args: "rollout status cloneset/web",
			out: "CloneSet rolling update complete 3 pods at revision web-2...\n",
		},
		"status with its pods": {
			objects: web, args: "rollout status cloneset/web -d", out: "Updated ready pods: \nUpdated not ready pods: \n",
		},
		"approve ends the pause of the step": {
			objects: []string{`{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: r, namespace: default},
				status: {canaryStatus: {currentStepState: StepPaused}}}`},
			args: "rollout approve rollout/r", out: "rollout.rollouts.kruise.io/r approved",
			writes: []string{`PATCH rollouts/r/status [{"op":"test","path":"/status/canaryStatus/currentStepState",` +
				`"value":"StepPaused"},{"op":"replace","path":"/status/canaryStatus/currentStepState","value":"StepReady"}]`},
		},
		"undo of a Rollout undoes its workload": {
			objects: []string{cloneSet, `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout,
				metadata: {name: r, namespace: default},
				spec: {workloadRef: {apiVersion: apps.kruise.io/VERSION, kind: CloneSet, name: web}}}`},
			args: "rollout undo rollout/r --to-revision=2", out: "cloneset.apps.kruise.io/web rolled back",
			writes: []string{`PATCH clonesets/web [{"op":"test","path":"/metadata/generation","value":4},` +
				`{"op":"replace","path":"/spec/template","value":{"metadata":{"labels":{"app":"web"}},` +
				`"spec":{"containers":[{"image":"app:2","name":"app","resources":{}}]}}}]`},
		},
		"a Deployment stays with kubectl": {
			objects: []string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: default},
				spec: {paused: true}}`},
			args: "rollout resume deployment/d", out: "deployment.apps/d resumed",
			writes: []string{`PATCH deployments/d {"spec":{"paused":null}}`},
		},
	})
}

// deploymentOf returns a Deployment that is rolled out in place, with a spec and annotations of its own.
func deploymentOf(image, spec, annotations string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, uid: d,
		generation: 4, annotations: {kruisekit.dev/rollout: '{"maxUnavailable":1}', %s}},
		spec: {%s selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
		spec: {containers: [{name: app, image: %q}]}}}}`, annotations, spec, image)
}

// replicaSetOf returns a ReplicaSet of the Deployment.
func replicaSetOf(revision, replicas int, image, annotations string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-%[1]d, namespace: default,
		labels: {app: web}, annotations: {deployment.kubernetes.io/revision: "%[1]d", cause: c%[1]d,
		kruisekit.dev/rollout: old, kruisekit.dev/rollout-hold: "1"},
		ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]},
		spec: {replicas: %[2]d, selector: {matchLabels: {app: web, pod-template-hash: x}}, template: {metadata: {
		labels: {app: web, pod-template-hash: x}, annotations: {%[4]s}}, spec: {containers: [{name: app, image: %[3]q}]}}}}`,
		revision, replicas, image, annotations)
}

// A held Deployment goes back to the template of the ReplicaSet that has the pods. Its hold, and what asks for the
// rollout, stay. The pause of a rollout in place is a field of its annotation.
func TestRolloutOfDeploymentInPlace(t *testing.T) {
	const hold, mark = `kruisekit.dev/rollout-hold: "3", note: text`, `kruisekit.dev/rollout-hold: "true"`
	back := func(cause, note, image string) []string {
		return []string{`PATCH deployments/web [{"op":"test","path":"/metadata/uid","value":"d"},` +
			`{"op":"test","path":"/metadata/generation","value":4},` +
			`{"op":"add","path":"/metadata/annotations/cause","value":"` + cause + `"},` + note +
			`{"op":"replace","path":"/spec/template","value":{"metadata":{"labels":{"app":"web"}},` +
			`"spec":{"containers":[{"image":"` + image + `","name":"app"}]}}}]`}
	}
	const noNote = `{"op":"remove","path":"/metadata/annotations/note"},`
	old, marked := replicaSetOf(1, 0, "app:1", ""), replicaSetOf(2, 3, "app:2", mark)
	held := []string{deploymentOf("app:3", "paused: true,", hold), old, marked}
	rolled := []string{deploymentOf("app:2", "", ""), old, replicaSetOf(2, 3, "app:2", "")}
	annotate := func(before, after string) []string {
		quoted := strings.NewReplacer(`"`, `\"`)
		return []string{`PATCH deployments/web [{"op":"test","path":"/metadata/annotations/kruisekit.dev~1rollout","value":"` +
			quoted.Replace(before) + `"},{"op":"add","path":"/metadata/annotations/kruisekit.dev~1rollout","value":"` +
			quoted.Replace(after) + `"}]`}
	}
	rows := map[string]row{
		"undo in the middle": {
			objects: held, args: "rollout undo deployment/web", out: "deployment.apps/web rolled back",
			writes: back("c2", noNote, "app:2"),
		},
		"undo in the middle to a revision": {
			objects: held, args: "rollout undo deployment/web --to-revision=1", writes: back("c1", noNote, "app:1"),
		},
		"undo of what the user has taken back": {
			objects: []string{deploymentOf("app:2", "paused: true,", hold), old, marked},
			args:    "rollout undo deployment/web", out: "skipped rollback (current template already matches revision 2)",
		},
		"undo after the end": {
			objects: rolled, args: "rollout undo deployment/web", writes: back("c1", "", "app:1"),
		},
		"undo of a change that the user has paused keeps the pause": {
			objects: []string{deploymentOf("app:3", "paused: true,", ""), old, marked},
			args:    "rollout undo deployment/web", writes: back("c2", "", "app:2"),
		},
		"undo without a history": {
			objects: rolled[:1], args: "rollout undo deployment/web", err: "no rollout history found",
		},
		"pause": {
			objects: held, args: "rollout pause deployment/web", out: "deployment.apps/web paused",
			writes: annotate(`{"maxUnavailable":1}`, `{"maxUnavailable":1,"paused":true}`),
		},
		"status": {
			objects: []string{deploymentOf("app:3", "paused: true,", hold+`, deployment.kubernetes.io/revision: "2"`)},
			args:    "rollout status deployment/web --watch=false --revision=2",
			out:     "Waiting for Deployment spec update to be observed...\n",
		},
		"resume of a hold": {objects: held, args: "rollout resume deployment/web", err: "is not paused"},
		"resume of the user's own pause": {
			objects: []string{deploymentOf("app:3", "paused: true,", "")}, args: "rollout resume deployment/web",
			writes: []string{`PATCH deployments/web [{"op":"test","path":"/metadata/generation","value":4},` +
				`{"op":"add","path":"/spec/paused","value":false}]`},
		},
	}
	for name, r := range rows {
		r.version = "v1beta1"
		rows[name] = r
	}
	try(t, rows)
}

// The hold of a Deployment ends with a restart, which kubectl refuses for a paused one.
func TestRestartOfHeldDeployment(t *testing.T) {
	server := apitest.New(t, "v1beta1", object(t, "", deploymentOf("app:3", "paused: true,",
		`kruisekit.dev/rollout-hold: "3"`)))
	got := server.Run(t, command.New, "rollout", "restart", "deployment/web")
	if got.Err != nil || len(got.Writes) != 1 || !strings.Contains(got.Writes[0], "restartedAt") ||
		strings.Contains(got.Writes[0], "paused") {
		t.Errorf("%+v", got)
	}
}

// A restart writes the time, which a row of the table above cannot state.
func TestRestart(t *testing.T) {
	for _, version := range versions() {
		server := apitest.New(t, version, object(t, version, cloneSet))
		got := server.Run(t, command.New, "rollout", "restart", "cloneset/web")
		if got.Err != nil || got.Out != "cloneset.apps.kruise.io/web restarted\n" || len(got.Writes) != 1 {
			t.Errorf("%s: %+v", version, got)
		}
		template, _, err := unstructured.NestedStringMap(server.Object("clonesets/web").Object,
			"spec", "template", "metadata", "annotations")
		if err != nil || template["kubectl.kubernetes.io/restartedAt"] == "" {
			t.Errorf("%s: %v, %v", version, template, err)
		}
	}
}
