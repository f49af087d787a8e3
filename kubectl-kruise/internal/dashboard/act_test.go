package dashboard

import (
	"net/http"
	"strings"
	"testing"
)

func web(verb string) action {
	return action{Verb: verb, Kind: "CloneSet", Namespace: "default", Name: "web", UID: "web"}
}

func TestReadOnly(t *testing.T) {
	g := open(t, "v1beta1", flags{}, cloneSet)
	for _, verb := range []string{"pause", "resume", "undo", "restart", "protect", "unprotect"} {
		if code, body := g.post(t, "api/act", web(verb)); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", verb, code, body)
		}
	}
	if writes := g.Writes(); len(writes) > 0 {
		t.Errorf("writes %v", writes)
	}
}

// An action writes what the command of its name writes.
func TestAct(t *testing.T) {
	const at = `PATCH clonesets/web `
	for _, version := range versions() {
		paused := map[string]string{
			"v1alpha1": `{"op":"add","path":"/spec/updateStrategy","value":{"paused":true}}`,
			"v1beta1":  `{"op":"add","path":"/spec/updateStrategy","value":{"rollingUpdate":{"paused":true}}}`,
		}[version]
		for name, row := range map[string]struct {
			action action
			write  string
			code   int
			answer string
		}{
			"pause":   {action: web("pause"), write: at + "[" + paused + "]", code: http.StatusOK, answer: "paused"},
			"resume":  {action: web("resume"), code: http.StatusOK, answer: "nothing to do"},
			"restart": {action: web("restart"), write: "restartedAt", code: http.StatusOK, answer: "restarted"},
			"undo": {
				action: web("undo"), code: http.StatusBadRequest, answer: "no last revision to roll back to",
			},
			"protect":   {action: web("protect"), write: "delete-protection", code: http.StatusOK, answer: "protected"},
			"unprotect": {action: web("unprotect"), code: http.StatusOK, answer: "nothing to do"},
			"another object of the name": {
				action: action{Verb: "pause", Kind: "CloneSet", Namespace: "default", Name: "web", UID: "older"},
				code:   http.StatusBadRequest, answer: "another object",
			},
			"an object that is gone": {
				action: action{Verb: "pause", Kind: "CloneSet", Namespace: "default", Name: "gone"},
				code:   http.StatusNotFound, answer: "gone",
			},
			"another kind": {
				action: action{Verb: "protect", Kind: "Namespace", Name: "default"}, code: http.StatusBadRequest,
				answer: "no workloads of kind",
			},
			"no action": {action: web("delete"), code: http.StatusBadRequest, answer: "there is no action"},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				g := open(t, version, flags{write: true}, cloneSet)
				code, body := g.post(t, "api/act", row.action)
				if code != row.code || !strings.Contains(body, row.answer) {
					t.Errorf("%d %s, want %d %s", code, body, row.code, row.answer)
				}
				writes := strings.Join(g.Writes(), "\n")
				if (row.write == "") != (writes == "") || !strings.Contains(writes, row.write) {
					t.Errorf("writes %s, want %s", writes, row.write)
				}
			})
		}
	}
}

// The page lists a Deployment that is rolled out in place, and no other, and takes it back.
func TestDeploymentInPlace(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, uid: d, annotations: {
		kruisekit.dev/rollout: '{}', kruisekit.dev/rollout-hold: "1", kruisekit.dev/rollout-status:
		'{"state":"Progressing","revision":"web-2","pods":1,"ready":1,"waiting":1}'}}, spec: {paused: true, replicas: 1,
		selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [
		{name: app, image: "app:2"}]}}}}`
	const plain = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: plain, namespace: default, uid: p}}`
	const set = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-abc, namespace: default, uid: s, labels: {app: web},
		ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}, spec: {replicas: 1,
		template: {metadata: {labels: {app: web, pod-template-hash: abc}}, spec: {containers: [{name: app, image: "app:1"}]}}}}`
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: web-abc-x, namespace: default,
		labels: {app: web, pod-template-hash: abc}}}`
	g := open(t, "v1beta1", flags{write: true}, plain, deployment, set, pod)
	listed := g.follow(t, "view=workloads")
	shows := has("Deployment.apps", "default/web", `"line":"Progressing, held: 0 of 1 pods updated`)
	listed.until(func(tables map[string]Change) bool { return shows(tables) && tables["Deployment.apps"].Loaded })
	if _, has := listed.tables["Deployment.apps"].Set["default/plain"]; has {
		t.Error("a Deployment without a rollout in place is listed")
	}
	g.follow(t, "view=rollout&kind=Deployment.apps&namespace=default&name=web").until(
		has("Pod", "default/web-abc-x", `"r":"abc"`))
	code, body := g.post(t, "api/act", action{
		Verb: "undo", Kind: "Deployment.apps", Namespace: "default", Name: "web", UID: "d",
	})
	if writes := g.Writes(); code != http.StatusOK || len(writes) != 1 || !strings.Contains(writes[0], `"image":"app:1"`) {
		t.Errorf("%d %s, writes %v", code, body, writes)
	}
}

// The rights of the user decide, also with --write.
func TestActWithoutRights(t *testing.T) {
	g := open(t, "v1beta1", flags{write: true}, cloneSet)
	g.Deny(func(r *http.Request) bool { return r.Method == http.MethodPatch })
	if code, body := g.post(t, "api/act", web("pause")); code != http.StatusForbidden {
		t.Errorf("%d %s", code, body)
	}
}

func TestPlan(t *testing.T) {
	for _, version := range versions() {
		g := open(t, version, flags{}, cloneSet)
		manifest := strings.NewReplacer("VERSION", version, "name: web, namespace: default, uid: web, generation: 4",
			"name: new").Replace(cloneSet) + "\n---\n{apiVersion: v1, kind: Service, metadata: {name: s}}\n"
		code, body := g.post(t, "api/plan", map[string]string{"manifest": manifest})
		for _, want := range []string{`"fate":"Created"`, `"severity":"Harmless"`, "forecast Service", `3 created`} {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s, want %s", version, code, body, want)
			}
		}
		if writes := g.Writes(); len(writes) > 0 {
			t.Errorf("writes %v", writes)
		}
	}
}

func TestPod(t *testing.T) {
	g := open(t, "v1beta1", flags{}, cloneSet, podText("web-a", "web-1"))
	code, body := g.get(t, "api/pod?namespace=default&name=web-a")
	if code != http.StatusOK || !strings.Contains(body, "CloneSet web owns it") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := g.get(t, "api/pod?namespace=default&name=gone"); code != http.StatusNotFound {
		t.Errorf("%d %s", code, body)
	}
}
