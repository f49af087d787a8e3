package command_test

import "testing"

func TestInsight(t *testing.T) {
	web := []string{cloneSet, podOf("web-a"), sidecarSet}
	try(t, map[string]row{
		"status": {
			objects: web, args: "status cloneset/web",
			out: "CloneSet default/web\n  CloneSet rolling update complete 3 pods at revision web-2...\n",
		},
		"watch ends when the rollout is done": {
			objects: web, args: "watch cloneset/web", out: "CloneSet default/web\n",
		},
		"explain names what touches a pod": {
			objects: web, args: "explain pod/web-a",
			out: "Touched by:\n  CloneSet web owns it\n  SidecarSet s selects the pod, which was created without it\n",
		},
		"explain of another kind": {objects: web, args: "explain cloneset/web", err: "cloneset/web is no pod"},
	})
}
