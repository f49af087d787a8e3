//go:build envtest

package pod_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// injected is a pod that an API server is asked to create, and what comes of it. All cases are there at the same time:
// pods and sets of one have its name as a label.
type injected struct {
	why string
	// metadata and spec of the pod, and the specs of its sets, as YAML.
	metadata, spec string
	sets           []string
	look           func(*corev1.Pod) []string
	want           []string
}

const (
	lone    = `containers: [{name: main, image: m}]`
	mainEnv = `containers: [{name: main, image: m, env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: OD_NAME, value: od}, {name: PROXY_IP, value: 10.0.0.1}]}]`
	hot     = `upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "empty:1"}`
	twins   = `containers: [{name: a, image: a, resources: {limits: {cpu: 200m, memory: 400Mi}, requests: {cpu: 100m, memory: 200Mi}}},
		{name: b, image: b, resources: {limits: {cpu: 400m, memory: 600Mi}, requests: {cpu: 200m, memory: 300Mi}}}]`
)

// copies is a container of a set that copies variables of another.
func copies(from string) string {
	return `containers: [{name: log, image: l, env: [{name: OD_NAME, value: own}], transferEnv: [{` + from +
		`, envNames: [PROXY_IP, POD_NAME, OD_NAME]}]}]`
}

// sized is a container of a set with formulas.
func sized(mode, formulas string) string {
	return fmt.Sprintf(`containers: [{name: log, image: l, resourcesPolicy: {targetContainersMode: %s, targetContainersNameRegex: .*, resourcesExpr: {%s}}}]`,
		mode, formulas)
}

func containers() map[string]injected {
	return map[string]injected{
		"before-and-behind": {
			why:  "a set says where",
			spec: lone,
			sets: []string{`containers: [
			{name: b, image: b, podInjectPolicy: AfterAppContainer}, {name: a, image: a, podInjectPolicy: BeforeAppContainer}]`},
			look: order,
			want: []string{"a=a", "main=m", "b=b"},
		},
		"init-behind": {
			"in the order of their names", "", lone + `, initContainers: [{name: i1, image: i}, {name: i2, image: i}]`,
			[]string{`initContainers: [{name: a, image: x}, {name: c, image: x}]`, `initContainers: [{name: b, image: x}]`},
			order,
			[]string{"init i1=i", "init i2=i", "init a=x", "init b=x", "init c=x", "main=m"},
		},
		"init-before": {
			why:  "in front if they say so",
			spec: lone + `, initContainers: [{name: i1, image: i}, {name: i2, image: i}]`,
			sets: []string{
				`initContainers: [{name: a, image: x}, {name: c, image: x, podInjectPolicy: BeforeAppContainer}, {name: b, image: x, podInjectPolicy: BeforeAppContainer}]`,
			},
			look: order,
			want: []string{"init b=x", "init c=x", "init i1=i", "init i2=i", "init a=x", "main=m"},
		},
		"native-behind": {
			"after the pod's own", "", lone + `, initContainers: [{name: z, image: i}]`,
			[]string{`updateStrategy: {type: NotUpdate}, initContainers: [{name: mesh, image: x, restartPolicy: Always}]`},
			order,
			[]string{"init z=i", "init mesh=x", "main=m"},
		},
		"there-already": {
			why:  "they are replaced where they are",
			spec: `containers: [{name: sidecar-1, image: o}, {name: app, image: m}, {name: sidecar-2, image: o}]`,
			sets: []string{
				`containers: [{name: sidecar-1, image: s1}, {name: sidecar-2, image: s2}, {name: new, image: x, podInjectPolicy: BeforeAppContainer}]`,
			},
			look: order,
			want: []string{"new=x", "sidecar-1=s1", "app=m", "sidecar-2=s2"},
		},
		"paused": {
			why:  "new pods get nothing",
			spec: lone,
			sets: []string{`injectionStrategy: {paused: true}, containers: [{name: log, image: l}]`},
			look: order,
			want: []string{"main=m"},
		},
		"shared-mounts": {
			why:  "its own go first, and a path is mounted once",
			spec: `volumes: [{name: data, emptyDir: {}}], containers: [{name: main, image: m, volumeMounts: [{name: data, mountPath: /main}, {name: data, mountPath: /both}]}]`,
			sets: []string{
				`containers: [{name: log, image: l, shareVolumePolicy: {type: enabled}, volumeMounts: [{name: own, mountPath: /own}, {name: own, mountPath: /both}]}], volumes: [{name: own, emptyDir: {}}, {name: unused, emptyDir: {}}]`,
			},
			look: mounts,
			want: []string{"own /own", "own /both", "data /main", "volume data", "volume own"},
		},
		"volume-of-the-pod": {
			why:  "what the set does not have the pod may",
			spec: `volumes: [{name: disk0, emptyDir: {}}], ` + lone,
			sets: []string{
				`containers: [{name: log, image: l, volumeMounts: [{name: disk0, mountPath: /d}]}], volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]`,
			},
			look: mounts,
			want: []string{"disk0 /d", "volume disk0"},
		},
		"shared-devices": {
			why:  "its own go first",
			spec: `volumes: [{name: raw, persistentVolumeClaim: {claimName: c}}], containers: [{name: main, image: m, volumeDevices: [{name: raw, devicePath: /dev/main}]}]`,
			sets: []string{
				`containers: [{name: log, image: l, shareVolumeDevicePolicy: {type: enabled}, volumeDevices: [{name: own, devicePath: /dev/own}]}], volumes: [{name: own, persistentVolumeClaim: {claimName: d}}]`,
			},
			look: mounts,
			want: []string{"own /dev/own", "raw /dev/main", "volume raw", "volume own"},
		},
		"devices-alone": {
			why:  "nobody said that they are shared",
			spec: `volumes: [{name: raw, persistentVolumeClaim: {claimName: c}}], containers: [{name: main, image: m, volumeDevices: [{name: raw, devicePath: /dev/main}]}]`,
			sets: []string{
				`containers: [{name: log, image: l, volumeDevices: [{name: own, devicePath: /dev/own}]}], volumes: [{name: own, persistentVolumeClaim: {claimName: d}}]`,
			},
			look: mounts,
			want: []string{"own /dev/own", "volume raw", "volume own"},
		},
		"pull-secrets": {
			"each once", "", `imagePullSecrets: [{name: b}, {name: a}], ` + lone,
			[]string{`containers: [{name: log, image: l}], imagePullSecrets: [{name: b}, {name: c}]`},
			func(p *corev1.Pod) []string {
				var all []string
				for _, s := range p.Spec.ImagePullSecrets {
					all = append(all, s.Name)
				}
				return all
			},
			[]string{"b", "a", "c"},
		},
	}
}

func variables() map[string]injected {
	return map[string]injected{
		"sub-path": {
			why: "what a shared mount refers to comes with it",
			spec: `volumes: [{name: data, emptyDir: {}}], containers: [{name: main, image: m, volumeMounts: [{name: data, mountPath: /main, subPathExpr: foo/$(POD_NAME)/$(OD_NAME)}],
			env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: OD_NAME, value: od}, {name: OTHER, value: x}]}]`,
			sets: []string{`containers: [{name: log, image: l, shareVolumePolicy: {type: enabled}}]`},
			look: env,
			want: []string{"IS_INJECTED=true", "POD_NAME=metadata.name", "OD_NAME=od"},
		},
		"transferred": {
			why:  "its own stay",
			spec: mainEnv,
			sets: []string{copies("sourceContainerName: main")},
			look: env,
			want: []string{"OD_NAME=own", "IS_INJECTED=true", "POD_NAME=metadata.name", "PROXY_IP=10.0.0.1"},
		},
		"source-by-label": {
			why:      "the pod names the container",
			metadata: "labels: {biz: main}",
			spec:     mainEnv,
			sets:     []string{copies("sourceContainerNameFrom: {fieldRef: {fieldPath: \"metadata.labels['biz']\"}}")},
			look:     env,
			want:     []string{"OD_NAME=own", "IS_INJECTED=true", "POD_NAME=metadata.name", "PROXY_IP=10.0.0.1"},
		},
		"source-by-annotation": {
			why:      "the pod names the container",
			metadata: "annotations: {biz: main}",
			spec:     mainEnv,
			sets:     []string{copies("sourceContainerNameFrom: {fieldRef: {fieldPath: \"metadata.annotations['biz']\"}}")},
			look:     env,
			want:     []string{"OD_NAME=own", "IS_INJECTED=true", "POD_NAME=metadata.name", "PROXY_IP=10.0.0.1"},
		},
		"source-missing": {
			why:  "there is nothing to copy",
			spec: mainEnv,
			sets: []string{copies("sourceContainerName: nobody")},
			look: env,
			want: []string{"OD_NAME=own", "IS_INJECTED=true"},
		},

		"sum": {
			why:  "all count",
			spec: twins,
			sets: []string{
				sized("sum",
					`limits: {cpu: "cpu*50% + 100m", memory: "max(memory*20% + 100Mi, 200Mi)"}, requests: {cpu: "cpu*30% + 50m", memory: "memory*15% + 50Mi"}`),
			},
			look: resources,
			want: []string{"limits.cpu=400m", "limits.memory=300Mi", "requests.cpu=140m", "requests.memory=125Mi"},
		},
		"half-the-sum": {
			why:  "200m and 400m",
			spec: twins,
			sets: []string{sized("sum", `limits: {cpu: "max(cpu*50%, 50m)"}`)},
			look: resources,
			want: []string{"limits.cpu=300m", "requests.cpu=300m"},
		},
		"half-the-largest": {
			why:  "400m",
			spec: twins,
			sets: []string{sized("max", `limits: {cpu: "max(cpu*50%, 50m)"}`)},
			look: resources,
			want: []string{"limits.cpu=200m", "requests.cpu=200m"},
		},
		"unlimited": {
			why:  "one target has no limit, so that the sidecar has none",
			spec: `containers: [{name: a, image: a, resources: {limits: {memory: 1Gi}}}, {name: b, image: b}]`,
			sets: []string{sized("sum", `limits: {cpu: "cpu", memory: 200Mi}`)},
			look: resources,
		},
		"constant": {
			why:  "all have a limit",
			spec: twins,
			sets: []string{sized("sum", `limits: {memory: 200Mi}`)},
			look: resources,
			want: []string{"limits.memory=200Mi", "requests.memory=200Mi"},
		},
		"what-counts": {
			why:  "no plain init container, and no container of a set; native sidecars of the pod do",
			spec: `containers: [{name: a, image: a, resources: {limits: {cpu: 200m}}}], initContainers: [{name: i, image: i, resources: {limits: {cpu: 7}}}, {name: mesh, image: i, restartPolicy: Always, resources: {limits: {cpu: 100m}}}]`,
			sets: []string{
				sized("sum", `limits: {cpu: cpu}`), `containers: [{name: other, image: o, resources: {limits: {cpu: 5}}}]`,
			},
			look: resources,
			want: []string{"limits.cpu=300m", "requests.cpu=300m"},
		},
		"native": {
			why:  "it is sized alike",
			spec: `containers: [{name: a, image: a, resources: {limits: {cpu: 400m, memory: 800Mi}}}, {name: b, image: b, resources: {limits: {cpu: 600m, memory: 1200Mi}}}]`,
			sets: []string{
				`updateStrategy: {type: NotUpdate}, initContainers: [{name: log, image: l, restartPolicy: Always, resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: .*,
				resourcesExpr: {limits: {cpu: "max(cpu*30%, 50m)", memory: "max(memory*25%, 100Mi)"}}}}]`,
			},
			look: resources,
			want: []string{"limits.cpu=300m", "limits.memory=500Mi", "requests.cpu=300m", "requests.memory=500Mi"},
		},
	}
}

func records() map[string]injected {
	const log, other = `containers: [{name: log, image: l}]`, `containers: [{name: other, image: o}]`
	return map[string]injected{
		"two-sets": {"both are reported", "", lone, []string{log, other}, told, []string{
			"list two-sets-0,two-sets-1", "two-sets-0 [log] two-sets-0-now", "two-sets-1 [other] two-sets-1-now",
		}},
		"legacy": {
			why:      "it is read, and written as others are",
			metadata: `annotations: {kruise.io/sidecarset-hash: '{"former":"h"}', kruise.io/sidecarset-injected-list: former}`,
			spec:     lone,
			sets:     []string{log},
			look:     told,
			want: []string{
				"list former,legacy-0", "former [] ", "legacy-0 [log] legacy-0-now",
			},
		},
		"merged": {
			why:      "both values are in it",
			metadata: `annotations: {k: '{"b":2}', l: pod, o: pod}`,
			spec:     lone,
			sets: []string{
				log +
					`, patchPodMetadata: [{patchPolicy: MergePatchJson, annotations: {k: '{"a":1}'}}, {patchPolicy: Retain, annotations: {l: set, new: set}}, {patchPolicy: Overwrite, annotations: {o: set}}]`,
			},
			look: func(p *corev1.Pod) []string {
				return []string{p.Annotations["k"], p.Annotations["l"], p.Annotations["new"], p.Annotations["o"]}
			},
			want: []string{`{"a":1,"b":2}`, "pod", "set", "set"},
		},
		"hot": {
			"the first works, the other is empty", "", lone,
			[]string{`containers: [{name: log, image: "log:1", ` + hot + `}]`},
			func(p *corev1.Pod) []string {
				all := append(order(p), p.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey])
				for _, name := range []string{"log-1", "log-2"} {
					all = append(all, p.Annotations[kruise.SidecarSetVersionKeyPrefix+name]+" "+
						p.Annotations[kruise.SidecarSetVersionAltKeyPrefix+name])
				}
				return all
			},
			[]string{"main=m", "log-1=log:1", "log-2=empty:1", `{"log":"log-1"}`, "1 0", "0 1"},
		},
		"record-kept": {
			why:  "a set does not write what pods record",
			spec: lone,
			sets: []string{
				log + `, patchPodMetadata: [{patchPolicy: Overwrite, annotations: {kruise.io/sidecarset-hash: no JSON}}]`,
			},
			look: told,
			want: []string{
				"list record-kept-0", "record-kept-0 [log] record-kept-0-now",
			},
		},
	}
}

func order(p *corev1.Pod) []string {
	var all []string
	for _, c := range p.Spec.InitContainers {
		all = append(all, "init "+c.Name+"="+c.Image)
	}
	for _, c := range p.Spec.Containers {
		all = append(all, c.Name+"="+c.Image)
	}
	return all
}

// ofLog is the container that sets add.
func ofLog(p *corev1.Pod) corev1.Container {
	all := slices.Concat(p.Spec.Containers, p.Spec.InitContainers)
	if i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == "log" }); i >= 0 {
		return all[i]
	}
	return corev1.Container{}
}

func mounts(p *corev1.Pod) []string {
	var all []string
	for _, m := range ofLog(p).VolumeMounts {
		all = append(all, m.Name+" "+m.MountPath)
	}
	for _, d := range ofLog(p).VolumeDevices {
		all = append(all, d.Name+" "+d.DevicePath)
	}
	for _, v := range p.Spec.Volumes {
		all = append(all, "volume "+v.Name)
	}
	return all
}

func env(p *corev1.Pod) []string {
	var all []string
	for _, e := range ofLog(p).Env {
		if e.ValueFrom != nil {
			e.Value = e.ValueFrom.FieldRef.FieldPath
		}
		all = append(all, e.Name+"="+e.Value)
	}
	return all
}

func resources(p *corev1.Pod) []string {
	var all []string
	r := ofLog(p).Resources
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			q := list.of[name]
			all = append(all, fmt.Sprintf("%s.%s=%s", list.name, name, q.String()))
		}
	}
	return all
}

// told is what a pod records of sets: their names, and of each its containers and revision.
func told(p *corev1.Pod) []string {
	all := []string{"list " + p.Annotations[kruise.SidecarSetInjectedListKey]}
	entries := map[string]kruise.SidecarSetInjected{}
	if err := json.Unmarshal([]byte(p.Annotations[kruise.SidecarSetHashKey]), &entries); err != nil {
		return append(all, err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		all = append(all, fmt.Sprintf("%s %v %s", e.SidecarSetName, e.SidecarList, e.ControllerRevision))
	}
	return all
}
