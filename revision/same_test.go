package revision_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/revision"
)

func TestSame(t *testing.T) {
	cases := map[string]struct {
		a, b string
		want bool
	}{
		"defaulted: what the API server fills in is no change": {
			a: `{spec: {containers: [{name: c, image: "i:1", ports: [{containerPort: 80}], env: [{name: E, valueFrom: {fieldRef: {fieldPath: metadata.name}}}],
			   readinessProbe: {httpGet: {port: 80}}, livenessProbe: {grpc: {port: 1}}, resources: {limits: {cpu: 1}},
			   lifecycle: {preStop: {httpGet: {port: 1}}}}],
			  volumes: [{name: a, secret: {secretName: s}}, {name: b, configMap: {name: s}}, {name: c,
			    downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}},
			   {name: d, projected: {sources: [{serviceAccountToken: {path: p}}]}}, {name: e, hostPath: {path: /x}}],
			  serviceAccountName: sa, topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule}]}}`,
			b: `{metadata: {creationTimestamp: null}, spec: {containers: [{name: c, image: "i:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log,
			   terminationMessagePolicy: File, ports: [{containerPort: 80, protocol: TCP}],
			   env: [{name: E, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}],
			   readinessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10,
			     successThreshold: 1, failureThreshold: 3},
			   livenessProbe: {grpc: {port: 1, service: ""}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1,
			     failureThreshold: 3},
			   resources: {limits: {cpu: "1"}, requests: {cpu: 1000m}}, lifecycle: {preStop: {httpGet: {port: 1, path: /,
			     scheme: HTTP}}}}],
			  volumes: [{name: a, secret: {secretName: s, defaultMode: 420}}, {name: b, configMap: {name: s, defaultMode: 420}},
			   {name: c, downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1,
			     fieldPath: metadata.name}}]}},
			   {name: d, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: p, expirationSeconds: 3600}}]}},
			     {name: e, hostPath: {path: /x, type: ""}}],
			  serviceAccountName: sa, serviceAccount: sa, restartPolicy: Always, dnsPolicy: ClusterFirst,
			    schedulerName: default-scheduler, securityContext: {}, terminationGracePeriodSeconds: 30,
			  enableServiceLinks: true, topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore}]}}`,
			want: true,
		},
		"pulled always: the reference's webhook fills in Always": {
			a:    `{spec: {containers: [{name: c, image: "i:1"}]}}`,
			b:    `{spec: {containers: [{name: c, image: "i:1", imagePullPolicy: Always}]}}`,
			want: true,
		},
		"pulled never: Never is not a default": {
			a: `{spec: {containers: [{name: c, image: "i:1"}]}}`,
			b: `{spec: {containers: [{name: c, image: "i:1", imagePullPolicy: Never}]}}`,
		},
		"pull policy changed: Always to IfNotPresent is what the user wrote": {
			a: `{spec: {containers: [{name: c, image: "i:1", imagePullPolicy: Always}]}}`,
			b: `{spec: {containers: [{name: c, image: "i:1", imagePullPolicy: IfNotPresent}]}}`,
		},
		"latest is pulled: an image without a tag behind a port is the latest": {
			a: `{spec: {containers: [{name: c, image: "r:5000/i"}]}}`,
			b: `{spec: {containers: [{name: c, image: "r:5000/i", imagePullPolicy: IfNotPresent}]}}`,
		},
		"digest: a digest is not the latest": {
			a:    `{spec: {containers: [{name: c, image: "i@sha256:1"}]}}`,
			b:    `{spec: {containers: [{name: c, image: "i@sha256:1", imagePullPolicy: IfNotPresent}]}}`,
			want: true,
		},
		"image: another image is a change": {
			a: `{spec: {containers: [{name: c, image: i}]}}`,
			b: `{spec: {containers: [{name: c, image: j}]}}`,
		},
		"host port: in the host's network the port is the host's": {
			a:    `{spec: {hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]}}`,
			b:    `{spec: {hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}}`,
			want: true,
		},
		"host port elsewhere: outside of it, it is not": {
			a: `{spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}}`,
			b: `{spec: {containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}}`,
		},
		"reordered: another order of containers is a change, whatever is a default": {
			a: `{spec: {containers: [{name: c, image: "i:1"}, {name: d, image: "i:1"}]}}`,
			b: `{spec: {containers: [{name: d, image: "i:1", imagePullPolicy: Always}, {name: c, image: "i:1", imagePullPolicy: Always}]}}`,
		},
		"projected fields: fields that are projected into files have a version": {
			a:    `{spec: {volumes: [{name: a, projected: {sources: [{downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}]}}]}}`,
			b:    `{spec: {volumes: [{name: a, projected: {defaultMode: 420, sources: [{downwardAPI: {items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}]}}]}}`,
			want: true,
		},
		"storage of old kinds: volume kinds of long ago have defaults too": {
			a:    `{spec: {volumes: [{name: a, iscsi: {targetPortal: t, iqn: i, lun: 0}}, {name: d, azureDisk: {diskName: d, diskURI: u}}]}}`,
			b:    `{spec: {volumes: [{name: a, iscsi: {targetPortal: t, iqn: i, lun: 0, iscsiInterface: default}}, {name: d, azureDisk: {diskName: d, diskURI: u, cachingMode: ReadWrite, kind: Shared, fsType: ext4, readOnly: false}}]}}`,
			want: true,
		},
		"claims in volumes: a claim is a file system unless said otherwise": {
			a:    `{spec: {volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {}}}}]}}`,
			b:    `{spec: {volumes: [{name: a, ephemeral: {volumeClaimTemplate: {metadata: {creationTimestamp: null}, spec: {volumeMode: Filesystem}}}}]}}`,
			want: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := template(t, c.a), template(t, c.b)
			before := a.DeepCopy()
			if got := revision.Same(a, b); got != c.want {
				t.Errorf("want %v, got %v", c.want, got)
			}
			if got := revision.Same(b, a); got != c.want {
				t.Errorf("the other way round: want %v, got %v", c.want, got)
			}
			if x, y := mustJSON(t, before), mustJSON(t, a); x != y {
				t.Errorf("the template was changed:\n%s\n%s", x, y)
			}
		})
	}
}

func TestSameDataOfBrokenRevisions(t *testing.T) {
	whole := `{"spec":{"template":{"spec":{"containers":null}}}}`
	for _, broken := range []string{``, `null`, `[]`, `{}`, `{"spec":{"template":7}}`, `{"spec":{"template":null}}`} {
		if revision.SameData([]byte(broken), []byte(whole)) || revision.SameData([]byte(whole), []byte(broken)) {
			t.Errorf("%q is said to be the same as a template", broken)
		}
		if !revision.SameData([]byte(broken), []byte(broken)) {
			t.Errorf("%q is not the same as itself", broken)
		}
	}
}

// FuzzDecode reads what anybody may have stored.
func FuzzDecode(f *testing.F) {
	f.Add(
		[]byte(`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{}}}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		template, err := revision.Decode(data)
		if err != nil {
			return
		}
		again, err := revision.Encode(template)
		if err != nil {
			t.Skip() // a value that the API server would not have stored
		}
		var whole map[string]map[string]any
		if json.Unmarshal(data, &whole) != nil || len(whole) > 1 || len(whole["spec"]) > 1 {
			t.Skip() // there is more than the template, which counts
		}
		if !revision.SameData(data, again) {
			t.Errorf("encoded again, it is another revision:\n%s\n%s", data, again)
		}
	})
}

func template(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	p := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
