package command_test

import "testing"

const sidecarSet = `{apiVersion: apps.kruise.io/VERSION, kind: SidecarSet, metadata: {name: s},
  spec: {selector: {matchLabels: {app: web}}, containers: [{name: c, image: "c:1"}]}}`

func TestSet(t *testing.T) {
	web := []string{cloneSet}
	const name = `{"op":"test","path":"/spec/template/spec/containers/0/name","value":"app"}`
	const unchanged = `{"op":"test","path":"/metadata/generation","value":4},`
	try(t, map[string]row{
		"image changes one field": {
			objects: web, args: "set image cloneset/web app=app:3", out: "cloneset.apps.kruise.io/web image updated",
			writes: []string{`PATCH clonesets/web [` + name +
				`,{"op":"add","path":"/spec/template/spec/containers/0/image","value":"app:3"}]`},
		},
		"image of a SidecarSet": {
			objects: []string{sidecarSet}, args: "set image sidecarset/s c=c:2",
			out: "sidecarset.apps.kruise.io/s image updated",
			writes: []string{`PATCH sidecarsets/s [{"op":"test","path":"/spec/containers/0/name","value":"c"},` +
				`{"op":"add","path":"/spec/containers/0/image","value":"c:2"}]`},
		},
		"image of a missing container": {
			objects: web, args: "set image cloneset/web none=app:3", err: `unable to find container named "none"`,
		},
		"image that is set already": {objects: web, args: "set image cloneset/web app=app:2"},
		"image by server-side dry run": {
			objects: web, args: "set image cloneset/web app=app:3 --dry-run=server", out: "image updated (server dry run)",
			writes: []string{`PATCH clonesets/web (dry run) [` + name +
				`,{"op":"add","path":"/spec/template/spec/containers/0/image","value":"app:3"}]`},
		},
		"image for a file, without a server": {
			args: "set image --local -f testdata/cloneset.yaml app=app:3 -o jsonpath={.spec.template.spec.containers[0].image}",
			out:  "app:3",
		},
		"env sets and removes": {
			objects: web, args: "set env cloneset/web A- B=b -c app", out: "cloneset.apps.kruise.io/web env updated",
			writes: []string{`PATCH clonesets/web [` + unchanged + name +
				`,{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"B","value":"b"}]}]`},
		},
		"env without overwriting": {
			objects: web, args: "set env cloneset/web A=b --overwrite=false", err: "already has a value (a)",
		},
		"env from a ConfigMap": {
			objects: []string{
				cloneSet, "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: default}, data: {k.x: v}}",
			},
			args: "set env cloneset/web --from=configmap/m -c log", out: "env updated",
			writes: []string{`PATCH clonesets/web [` + unchanged +
				`{"op":"test","path":"/spec/template/spec/containers/1/name","value":"log"},` +
				`{"op":"add","path":"/spec/template/spec/containers/1/env","value":[{"name":"K_X",` +
				`"valueFrom":{"configMapKeyRef":{"name":"m","key":"k.x"}}}]}]`},
		},
		"env lists": {
			objects: web, args: "set env cloneset/web --list",
			out: "# clonesets/web, container app\nA=a\n# clonesets/web, container log\n",
		},
		"resources keep what is not named": {
			objects: web, args: "set resources cloneset/web -c log --limits=cpu=1", out: "resource requirements updated",
			writes: []string{`PATCH clonesets/web [` + unchanged +
				`{"op":"test","path":"/spec/template/spec/containers/1/name","value":"log"},` +
				`{"op":"add","path":"/spec/template/spec/containers/1/resources","value":{"limits":{"cpu":"1"}}}]`},
		},
		"serviceaccount": {
			objects: web, args: "set serviceaccount cloneset/web robot",
			out:    "cloneset.apps.kruise.io/web serviceaccount updated",
			writes: []string{`PATCH clonesets/web [{"op":"add","path":"/spec/template/spec/serviceAccountName","value":"robot"}]`},
		},
		"selector is kubectl's": {
			objects: []string{
				"{apiVersion: v1, kind: Service, metadata: {name: s, namespace: default}, spec: {selector: {a: b}}}",
			},
			args: "set selector service s a=c", out: "service/s selector updated",
			writes: []string{`PATCH services/s {"spec":{"selector":{"a":"c"}}}`},
		},
	})
}
