//go:build envtest

package command_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// call is a command, and what it prints. The user has the rights that the documentation lists for its name.
type call struct {
	name string // in the table of rights; empty for an administrator
	args string
	out  string
	err  string
}

// calls are run in this order: each finds what the former has written.
func calls() []call {
	return []call{
		{"rollout history", "rollout history cloneset/web", "2         <none>", ""},
		{"rollout pause", "rollout pause cloneset/web", "cloneset.apps.kruise.io/web paused", ""},
		{"rollout resume", "rollout resume cloneset/web", "cloneset.apps.kruise.io/web resumed", ""},
		{"rollout restart", "rollout restart cloneset/web", "cloneset.apps.kruise.io/web restarted", ""},
		{"rollout status", "rollout status cloneset/web --watch=false", "spec update to be observed", ""},
		{"rollout status --detail", "rollout status cloneset/web --watch=false -d", "Updated ready pods:", ""},
		{"rollout undo", "rollout undo cloneset/web --to-revision=1", "cloneset.apps.kruise.io/web rolled back", ""},
		{"", "rollout approve rollout/demo", "rollout.rollouts.kruise.io/demo approved", ""},
		{"", "describe rollout demo", "Step:        1/1", ""},
		{"set image", "set image cloneset/web app=app:3", "cloneset.apps.kruise.io/web image updated", ""},
		{"set image", "set image sidecarset/SIDECARSET c=c:2", "image updated", ""},
		{"set env", "set env cloneset/web KEY=value", "cloneset.apps.kruise.io/web env updated", ""},
		{"set resources", "set resources cloneset/web --limits=cpu=1", "resource requirements updated", ""},
		{"set serviceaccount", "set serviceaccount cloneset/web robot", "serviceaccount updated", ""},
		{"", "set selector service other a=b", "service/other selector updated", ""},
		{"scale", "scale cloneset/web --replicas=3", "cloneset.apps.kruise.io/web scaled", ""},
		{"autoscale", "autoscale cloneset/web --max=9", "horizontalpodautoscaler.autoscaling/web autoscaled", ""},
		{"expose", "expose cloneset/web --port=80", "service/web exposed", ""},
		{"create broadcastJob", "create broadcastJob j --image=i -- date", "broadcastjob.apps.kruise.io/j created", ""},
		{"", "create broadcastJob from --from=acj/cron", "broadcastjob.apps.kruise.io/from created", ""},
		{"create ContainerRecreateRequest", "create ContainerRecreateRequest r -p web-a -m 5", "/r created", ""},
		{"exec", "exec cloneset/web -- true", "", "does not have a host assigned"},
		{"status", "status cloneset/web", "CloneSet NAMESPACE/web", ""},
		{"watch", "watch cloneset/done", "CloneSet rolling update complete 0 pods", ""},
		{"plan", "plan cloneset/web --image app=app:9 --fail-on never", "CloneSet NAMESPACE/web: ", ""},
		{"explain", "explain pod/web-a", "CloneSet web owns it", ""},
		{"scaledown", "scaledown cloneset web --pods=web-a", "selective pod deletion", ""},
		{"protect", "protect cloneset/web", "cloneset.apps.kruise.io/web protected", ""},
		{"unprotect", "unprotect cloneset/web", "cloneset.apps.kruise.io/web unprotected", ""},
		{"pause-all", "pause-all", "cloneset.apps.kruise.io/web paused", ""},
		{"pause-all", "pause-all --resume", "cloneset.apps.kruise.io/web resumed", ""},
		{"restart", "restart cloneset/web --timeout=1ms --interval=1ms", "0 of 1 pods, 1 under way", "restart took longer"},
		{"pull", "pull app:2 --wait=false", "created", ""},
		{"migrate --create", "migrate CloneSet --from Deployment --src-name d --create", "Successfully created", ""},
		{"migrate", "migrate CloneSet --from Deployment --src-name d --replicas 0", "Successfully migrated 0 replicas", ""},
		{"migrate --in-place", "migrate CloneSet --from Deployment --src-name idle --in-place --dry-run=server", "", ""},
		{"migrate StatefulSet", "migrate StatefulSet --from StatefulSet --src-name idle --dry-run=server", "", ""},
		{"migrate --check", "migrate --check", "definitions: customresourcedefinitions", ""},
		{"diagnose", "diagnose -o DIR/bundle", "Wrote ", ""},
		{"dashboard", "dashboard --port=-1", "", "listen: "}, // which reads nothing before a page is open
		{"", "get all", "cloneset.apps.kruise.io/web", ""},
		{"", "describe cloneset web", "API Version:  apps.kruise.io/VERSION", ""},
		{"", "rollout restart cloneset/missing", "", `clonesets.apps.kruise.io "missing" not found`},
		{"", "version", "Server Version: v1.", ""},
	}
}

// Every command works with each API version, and with no more rights than the documentation lists.
func TestCommandsOnAPIServer(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	rights := documentedRights(t)
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			remove := serve(t, c, version)
			defer remove()
			namespace := c.Namespace(t)
			fill(t, c, version, namespace)
			dir := t.TempDir()
			named := strings.NewReplacer("VERSION", version, "NAMESPACE", namespace, "SIDECARSET", "s-"+namespace, "DIR", dir)
			for i, one := range calls() {
				args := append([]string{"--namespace", namespace}, strings.Fields(named.Replace(one.args))...)
				if one.name != "" {
					user := fmt.Sprintf("user-%s-%d", version, i)
					allow(t, clients, namespace, user, rights[one.name], one)
					args = append([]string{"--as", user}, args...)
				}
				got := apitest.RunConfig(t, command.New, c.Kubeconfig, args...)
				if (got.Err != nil) != (one.err != "") || got.Err != nil && !strings.Contains(got.Err.Error(), one.err) {
					t.Errorf("%s: error %v, want %q", one.args, got.Err, one.err)
				}
				if out := named.Replace(one.out); !strings.Contains(got.Out+got.ErrOut, out) {
					t.Errorf("%s: %q %q, want %q", one.args, got.Out, got.ErrOut, out)
				}
			}
		})
	}
	for name := range rights {
		if !slices.ContainsFunc(calls(), func(one call) bool { return one.name == name }) {
			t.Errorf("no call shows that the rights of %s suffice", name)
		}
	}
}

// serve serves the CRDs in one version alone, where they have it, and returns what removes them.
func serve(t *testing.T, c *cluster.Cluster, version string) (remove func()) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	files, err := filepath.Glob(filepath.Join(apitest.CRDs(), "*.kruise.io_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range append(files, "testdata/rollouts.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := object(t, version, string(data))
		only(t, crd, version)
		if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		names = append(names, crd.GetName())
	}
	for _, name := range names {
		until(t, name+" is served", func(ctx context.Context) (bool, error) {
			crd, err := crds.Get(ctx, name, metav1.GetOptions{})
			return err == nil && strings.Contains(fmt.Sprint(crd.Object["status"]), "status:True type:Established"), err
		})
	}
	return func() {
		for _, name := range names {
			if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		for _, name := range names {
			until(t, name+" is gone", func(ctx context.Context) (bool, error) {
				_, err := crds.Get(ctx, name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return true, nil
				}
				return false, err
			})
		}
	}
}

// only leaves one version in a CRD, where it has that.
func only(t *testing.T, crd *unstructured.Unstructured, version string) {
	t.Helper()
	all, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		fields, is := v.(map[string]any)
		if is && fields["name"] == version {
			fields["storage"] = true
			if err := unstructured.SetNestedSlice(crd.Object, []any{fields}, "spec", "versions"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func until(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// fill creates the objects that the calls name.
func fill(t *testing.T, c *cluster.Cluster, version, namespace string) {
	t.Helper()
	create := func(text string) *unstructured.Unstructured {
		t.Helper()
		o := object(t, version, text)
		if o.GetKind() != "SidecarSet" {
			o.SetNamespace(namespace)
		}
		status := o.Object["status"]
		o.SetUID("")
		o.SetGeneration(0)
		if err := c.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if status != nil {
			o.Object["status"] = status
			if err := c.Client.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		return o
	}
	web := create(strings.Replace(cloneSet, "{observedGeneration: 4, replicas: 3,",
		"{observedGeneration: 1, replicas: 3, updatedReadyReplicas: 0, availableReplicas: 0,", 1))
	own := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		o.SetNamespace(namespace)
		refs := o.GetOwnerReferences()
		refs[0].UID = web.GetUID()
		o.SetOwnerReferences(refs)
		return o
	}
	for number, image := range map[int64]string{1: "app:1", 2: "app:2"} {
		r := stored(t, number, image)
		r.Namespace, r.OwnerReferences[0].UID = namespace, web.GetUID()
		if err := c.Client.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	pod := own(object(t, version, strings.Replace(podOf("web-a"), "nodeName: node1, ", "", 1)))
	status := pod.Object["status"]
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Object["status"] = status
	if err := c.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	create(strings.NewReplacer("{name: web, namespace: default, uid: web, generation: 4}", "{name: done}",
		"replicas: 3\n", "replicas: 0\n", "{observedGeneration: 4, replicas: 3, updatedReplicas: 3, readyReplicas: 3,",
		"{observedGeneration: 1, replicas: 0, updatedReplicas: 0, readyReplicas: 0, updatedReadyReplicas: 0, "+
			"availableReplicas: 0,",
	).Replace(cloneSet))
	create(strings.Replace(sidecarSet, "{name: s}", "{name: s-"+namespace+"}", 1))
	create(`{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: demo},
		spec: {workloadRef: {apiVersion: apps.kruise.io/VERSION, kind: CloneSet, name: web},
			strategy: {canary: {steps: [{replicas: 1}]}}},
		status: {canaryStatus: {currentStepIndex: 1, currentStepState: StepPaused}}}`)
	create(`{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {selector: {a: a}, ports: [{port: 1}]}}`)
	create(`{apiVersion: apps.kruise.io/VERSION, kind: AdvancedCronJob, metadata: {name: cron},
		spec: {schedule: "0 0 * * *", template: {broadcastJobTemplate: {spec: {completionPolicy: {type: Always},
			template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}}`)
	create(strings.NewReplacer("{name: web, namespace: default, uid: d, generation: 1}", "{name: d}").Replace(deployment))
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		create(`{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: idle}, spec: {replicas: 0,
			selector: {matchLabels: {app: idle}}, template: {metadata: {labels: {app: idle}},
				spec: {containers: [{name: app, image: "app:1"}]}}}, status: {observedGeneration: 1, replicas: 0}}`)
	}
}

// documentedRights reads the table of rights in the documentation.
func documentedRights(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/kubectl-kruise.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| command | rights |\n")
	if !found {
		t.Fatal("docs/kubectl-kruise.md has no table of rights")
	}
	rights := map[string]string{}
	row := regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]*) \\|$")
	for line := range strings.Lines(table) {
		if line == "\n" {
			break
		}
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			rights[m[1]], _, _ = strings.Cut(m[2], "(")
		}
	}
	return rights
}

// allow gives a user the rights of a row, in all namespaces where the object has none.
func allow(t *testing.T, clients kubernetes.Interface, namespace, user, rights string, one call) {
	t.Helper()
	if rights == "" {
		t.Fatalf("no rights of %s are documented", one.name)
	}
	workload := "clonesets.apps.kruise.io"
	if strings.Contains(one.args, "sidecarset/") {
		workload = "sidecarsets.apps.kruise.io"
	}
	var rules []rbacv1.PolicyRule
	for right := range strings.SplitSeq(strings.TrimSpace(rights), ";") {
		verbs, resource, ok := strings.Cut(strings.TrimSpace(right), " ")
		if !ok {
			continue // none
		}
		resource = strings.Replace(resource, "workload", workload, 1)
		name, sub, _ := strings.Cut(resource, "/")
		name, group, _ := strings.Cut(name, ".")
		if sub != "" {
			name += "/" + sub
		}
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{name}, Verbs: strings.Split(verbs, ","),
		})
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := clients.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := metav1.ObjectMeta{Name: user, Namespace: namespace}
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}
	var err error
	if strings.Contains(one.args, "sidecarset/") {
		binding.Namespace = ""
		_, err = clients.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: binding, Subjects: subject, RoleRef: ref}, metav1.CreateOptions{})
	} else {
		_, err = clients.RbacV1().RoleBindings(namespace).Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: binding, Subjects: subject, RoleRef: ref}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
