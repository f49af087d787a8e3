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
