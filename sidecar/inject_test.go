package sidecar_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

func TestInjectOrder(t *testing.T) {
	cases := map[string]struct {
		why              string
		inits, own       []string
		sets             []*v1beta1.SidecarSet
		sorted           bool
		wantInits, wants []string
		notes            []string
	}{
		"before and behind": {
			why: "each on its side of the pod's own", own: []string{"main"},
			sets:  []*v1beta1.SidecarSet{sidecarSet("s", of(container("b", behind), container("a", before)))},
			wants: []string{"a", "main", "b"},
		},
		"init containers before": {
			why: "sorted by name on each side", inits: []string{"i1", "i2"}, own: []string{"main"},
			sets: []*v1beta1.SidecarSet{
				sidecarSet("s", ofInit(container("a"), container("c", before), container("b", before))),
			},
			wantInits: []string{"b", "c", "i1", "i2", "a"}, wants: []string{"main"},
		},
		"there already": {
			why:   "what has the name is replaced where it is",
			own:   []string{"sidecar-1", "app", "sidecar-2"},
			sets:  []*v1beta1.SidecarSet{sidecarSet("s", of(container("sidecar-1"), container("sidecar-2"), container("new")))},
			wants: []string{"new", "sidecar-1", "app", "sidecar-2"},
			notes: []string{"ContainerReplaced s", "ContainerReplaced s"},
		},
		"several sets": {
			why: "by the names of the sets, then as written", own: []string{"main"},
			sets: []*v1beta1.SidecarSet{
				sidecarSet("s2", of(container("a"))), sidecarSet("s1", of(container("z"), container("y"))),
			},
			wants: []string{"z", "y", "a", "main"},
		},
		"several sets, sorted": {
			why: "by the names of the containers", own: []string{"main"}, sorted: true,
			sets: []*v1beta1.SidecarSet{
				sidecarSet("s2", of(container("a"))), sidecarSet("s1", of(container("z"), container("y"))),
			},
			wants: []string{"a", "y", "z", "main"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf()
			for _, n := range c.inits {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, own(n))
			}
			for _, n := range c.own {
				pod.Spec.Containers = append(pod.Spec.Containers, own(n))
			}
			got, notes := inject(t, pod, sidecar.Options{Now: noon(), SortContainers: c.sorted}, c.sets...)
			sameAs(t, c.why, [][]string{c.wantInits, c.wants}, [][]string{
				names(got.Spec.InitContainers), names(got.Spec.Containers),
			})
			if !slices.Equal(c.notes, codes(notes)) {
				t.Errorf("notes: want %v, got %v", c.notes, notes)
			}
		})
	}
}

// TestInjectContainer looks at what one container gets in a pod that has much to share.
func TestInjectContainer(t *testing.T) {
	podName := corev1.EnvVar{
		Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
	}
	main := own("main", mounts("disk", "/main", "disk", "/taken"), devices("block", "/dev/a", "block", "/taken-device"),
		env("PROXY_IP", "old", "OD_NAME", "od", "PROXY_IP", "ip"))
	main.Env = append(main.Env, podName)
	main.VolumeMounts[0].SubPathExpr = "foo/$(POD_NAME)/$(OD_NAME)/$(NONE)/$(9)/$(open"
	brought := own("brought", mounts("disk", "/brought"), devices("block", "/dev/brought"),
		env(kruise.SidecarInjectedEnvName, "true", "SECRET", "s"))
	init := own("init", mounts("disk", "/init"), env("INIT", "i"))

	one := func(c *corev1.Container) {
		c.VolumeMounts, c.VolumeDevices = mountsOf("logs", "/logs"), devicesOf("raw", "/dev/raw")
	}
	shared := main.VolumeMounts[0]

	cases := map[string]struct {
		why     string
		changes []containerChange
		mounts  []corev1.VolumeMount
		devices []corev1.VolumeDevice
		env     []corev1.EnvVar
		notes   []string
	}{
		"nothing": {
			why: "it says that it was injected, and no more", changes: []containerChange{core(one)},
			mounts: mountsOf("logs", "/logs"), devices: devicesOf("raw", "/dev/raw"), env: []corev1.EnvVar{injected()},
		},
		"mounts": {
			why:     "its own first, then those of the pod's own containers, with the variables that they need",
			changes: []containerChange{core(mounts("logs", "/logs")), sharing},
			mounts:  append(mountsOf("logs", "/logs"), shared, main.VolumeMounts[1]),
			env:     []corev1.EnvVar{injected(), podName, value("OD_NAME", "od")},
		},
		"mounts that are taken": {
			why:     "a path is mounted once, by a mount or by a device",
			changes: []containerChange{core(mounts("logs", "/main", "disk", "/taken")), sharing},
			mounts:  mountsOf("logs", "/main", "disk", "/taken"),
			env:     []corev1.EnvVar{injected(), podName, value("OD_NAME", "od")},
			notes:   []string{"PathTaken s"},
		},
		"a device in the way": {
			why:     "the same",
			changes: []containerChange{core(devices("raw", "/main", "disk", "/taken")), sharing},
			devices: devicesOf("raw", "/main", "disk", "/taken"),
			env:     []corev1.EnvVar{injected(), podName, value("OD_NAME", "od")},
			notes:   []string{"PathTaken s"},
		},
		"devices": {
			why:     "its own first, then those whose path is free",
			changes: []containerChange{core(devices("raw", "/dev/raw")), core(mounts("logs", "/taken-device")), sharingDevices},
			mounts:  mountsOf("logs", "/taken-device"),
			devices: devicesOf("raw", "/dev/raw", "block", "/dev/a"),
			env:     []corev1.EnvVar{injected()},
			notes:   []string{"PathTaken s"},
		},
		"variables": {
			why:     "what it has goes before what it copies; of two of one name the last counts",
			changes: []containerChange{core(env("OD_NAME", "mine")), wholeEnv},
			env:     []corev1.EnvVar{value("OD_NAME", "mine"), injected(), podName, value("PROXY_IP", "ip")},
		},
		"variables and mounts": {
			why:     "what is copied on purpose goes first",
			changes: []containerChange{transfers("main", "PROXY_IP"), sharing},
			mounts:  []corev1.VolumeMount{shared, main.VolumeMounts[1]},
			env:     []corev1.EnvVar{injected(), value("PROXY_IP", "ip"), podName, value("OD_NAME", "od")},
		},
		"by label": {
			why:     "the name of the source may stand in the pod",
			changes: []containerChange{transfersFrom("metadata.labels['biz']", "OD_NAME")},
			env:     []corev1.EnvVar{injected(), value("OD_NAME", "od")},
		},
		"by annotation": {
			why:     "the same",
			changes: []containerChange{transfersFrom("metadata.annotations['biz.example.com/name']", "OD_NAME")},
			env:     []corev1.EnvVar{injected(), value("OD_NAME", "od")},
		},
		"by what is not there": {
			why: "it gets nothing", env: []corev1.EnvVar{injected()},
			changes: []containerChange{
				transfersFrom("metadata.labels['x']", "OD_NAME"), transfersFrom("metadata.name", "OD_NAME"),
				transfersFrom("spec['biz']", "OD_NAME"),
			},
			notes: []string{"EnvNotTransferred s", "EnvNotTransferred s", "EnvNotTransferred s"},
		},
		"what is not there": {
			why: "the rest comes, and nothing of what sets brought or of init containers",
			env: []corev1.EnvVar{injected(), value("OD_NAME", "od")},
			changes: []containerChange{
				transfers("main", "NONE", "OD_NAME"), transfers("nobody", "A"), transfers("brought", "SECRET"),
				transfers("init", "INIT"),
			},
			notes: []string{"EnvNotTransferred s", "EnvNotTransferred s", "EnvNotTransferred s", "EnvNotTransferred s"},
		},
		"a source without field": {
			why: "then the plain name counts", env: []corev1.EnvVar{injected(), value("OD_NAME", "od")},
			changes: []containerChange{transfers("main", "OD_NAME"), func(c *v1beta1.SidecarContainer) {
				c.TransferEnv[0].SourceContainerNameFrom = &v1beta1.SourceContainerNameSource{}
				c.TransferEnv[0].EnvName = "OD_NAME"
			}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(*main.DeepCopy(), *brought.DeepCopy())
			pod.Spec.InitContainers = []corev1.Container{*init.DeepCopy()}
			pod.Spec.Volumes = emptyDirs("", "disk", "block")
			pod.Labels["biz"], pod.Annotations = "main", pairs("biz.example.com/name", "main")
			set := sidecarSet("s", of(container("sidecar", c.changes...)), volumes("logs", "raw"))
			got, notes := inject(t, pod, at(), set)
			want := corev1.Container{
				Name: "sidecar", Image: "sidecar:1", VolumeMounts: c.mounts, VolumeDevices: c.devices, Env: c.env,
			}
			sameAs(t, c.why, want, got.Spec.Containers[0])
			sameAs(t, "the pod's own containers", pod.Spec.Containers, got.Spec.Containers[1:])
			if !slices.Equal(c.notes, codes(notes)) {
				t.Errorf("notes: want %v, got %v", c.notes, notes)
			}
		})
	}
}

// TestReplacedContainerLends tests that a container that a set replaces lends what it has, and that a second admission
// of the pod, which finds the replacement in its place, changes nothing.
func TestReplacedContainerLends(t *testing.T) {
	expanded := func(volume, path, subPath string) func(*corev1.Container) {
		return func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path, SubPathExpr: subPath})
		}
	}
	mesh := own("mesh", mounts("config", "/config"), env("TOKEN", "t", "ZONE", "z"))
	cases := map[string]struct {
		why     string
		pod     *corev1.Pod
		sets    []*v1beta1.SidecarSet
		of      string
		mounts  []corev1.VolumeMount
		devices []corev1.VolumeDevice
		env     []corev1.EnvVar
	}{
		"variables": {
			why: "a set that takes over an embedded sidecar asks the sidecar itself", of: "mesh",
			pod:  podOf(own("main"), mesh),
			sets: []*v1beta1.SidecarSet{sidecarSet("s", of(container("mesh", transfers("mesh", "ZONE", "TOKEN"))))},
			env:  []corev1.EnvVar{injected(), value("TOKEN", "t"), value("ZONE", "z")},
		},
		"the order of variables": {
			why: "a variable that the sub-path of an own mount names keeps its place in a second admission", of: "mesh",
			pod: podOf(mesh,
				own("main", expanded("config", "/main", "$(A)"), env("A", "a", "Y", "y"), expanded("config", "/other", "$(Y)"))),
			sets: []*v1beta1.SidecarSet{
				sidecarSet("s", of(container("mesh", core(expanded("own", "/own", "$(Y)")), sharing)), volumes("own")),
			},
			mounts: slices.Concat(own("", expanded("own", "/own", "$(Y)")).VolumeMounts, mountsOf("config", "/config"),
				own("", expanded("config", "/main", "$(A)"), expanded("config", "/other", "$(Y)")).VolumeMounts),
			env: []corev1.EnvVar{injected(), value("A", "a"), value("Y", "y")},
		},
		"to the sidecar of another set": {
			why: "a container lends to every injected container", of: "agent",
			pod: podOf(own("main"), mesh),
			sets: []*v1beta1.SidecarSet{
				sidecarSet("s", of(container("mesh"))),
				sidecarSet("t", of(container("agent", sharing, transfers("mesh", "TOKEN", "ZONE")))),
			},
			mounts: mountsOf("config", "/config"), env: []corev1.EnvVar{injected(), value("TOKEN", "t"), value("ZONE", "z")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.pod.Spec.Volumes = emptyDirs("", "a", "b", "config", "raw")
			got, _ := inject(t, c.pod, at(), c.sets...)
			is := got.Spec.Containers[slices.Index(names(got.Spec.Containers), c.of)]
			want := corev1.Container{
				Name: c.of, Image: c.of + ":1", VolumeMounts: c.mounts, VolumeDevices: c.devices, Env: c.env,
			}
			sameAs(t, c.why, want, is)
			again, notes := inject(t, got, at(), c.sets...)
			sameAs(t, "a second admission", got, again)
			if len(notes) > 0 {
				t.Errorf("notes of the second admission: %v", notes)
			}
		})
	}
}

// TestStaleSidecarLendsNothing tests a pod that is a copy of one with another version of a set.
func TestStaleSidecarLendsNothing(t *testing.T) {
	pod := podOf(own("main"), own("mesh", mounts("config", "/config"), env("TOKEN", "t")))
	pod.Spec.Volumes = emptyDirs("", "config")
	former, _ := inject(t, pod, at(), sidecarSet("s", of(container("mesh", sharing, transfers("mesh", "TOKEN")))))
	now := container("mesh", sharing, transfers("mesh", "TOKEN"))
	now.Image = "mesh:2"
	got, _ := inject(t, former, at(), sidecarSet("s", of(now)))
	want := corev1.Container{Name: "mesh", Image: "mesh:2", Env: []corev1.EnvVar{injected()}}
	sameAs(t, "a container with the mark lends nothing", want, got.Spec.Containers[1])
}

func injected() corev1.EnvVar { return value(kruise.SidecarInjectedEnvName, "true") }

func value(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func mountsOf(volumesAndPaths ...string) []corev1.VolumeMount {
	return own("", mounts(volumesAndPaths...)).VolumeMounts
}

func devicesOf(volumesAndPaths ...string) []corev1.VolumeDevice {
	return own("", devices(volumesAndPaths...)).VolumeDevices
}

func TestInjectVolumesAndSecrets(t *testing.T) {
	pod := podOf(own("main"))
	pod.Spec.Volumes = emptyDirs("Memory", "shared")
	pod.Spec.ImagePullSecrets = references("b", "a", "b")
	got, notes := inject(t, pod, at(), sidecarSet("s1",
		of(container("c", core(mounts("logs", "/logs", "disk0", "/disk")), core(devices("raw", "/dev/raw")))),
		volumes("logs", "unused", "raw"), secrets("c", "a")), sidecarSet("s2",
		of(container("d", core(mounts("shared", "/shared", "logs", "/logs")))), volumes("shared", "logs"), secrets("d", "c")))
	sameAs(t, "the pod's own go first, and what nobody mounts stays away",
		slices.Concat(emptyDirs("Memory", "shared"), emptyDirs("", "logs", "raw")), got.Spec.Volumes)
	sameAs(t, "each secret once", references("b", "a", "c", "d"), got.Spec.ImagePullSecrets)
	sameAs(t, "notes", []string{"VolumeMissing s1", "VolumeKept s2"}, codes(notes))
}

func TestInjectRefuses(t *testing.T) {
	pod := podOf(own("main"))
	pod.Spec.InitContainers = []corev1.Container{own("init")}
	broken := func(key, value string) *corev1.Pod {
		p := pod.DeepCopy()
		p.Annotations = pairs(key, value)
		return p
	}
	cases := map[string]struct {
		why  string
		pod  *corev1.Pod
		sets []*v1beta1.SidecarSet
		want string
		is   error
	}{
		"twice in sets": {
			why: "the API server would refuse the pod", is: sidecar.ErrClash,
			sets: []*v1beta1.SidecarSet{sidecarSet("b", of(container("c"))), sidecarSet("a", of(container("c")))},
			want: "sidecarset b: spec.containers[0]: container c is of sidecarset a too: the name is in the pod already",
		},
		"an init container of the pod": {
			why: "it is not replaced by what is none", is: sidecar.ErrClash,
			sets: []*v1beta1.SidecarSet{sidecarSet("a", of(container("init")))},
			want: "sidecarset a: spec.containers[0]: container init is beside one of another kind: " +
				"the name is in the pod already",
		},
		"one of a pair": {
			why: "the names that are taken are those in the pod", is: sidecar.ErrClash,
			sets: []*v1beta1.SidecarSet{
				sidecarSet("a", of(container("c", hot("empty")))), sidecarSet("b", of(container("c-2"))),
			},
			want: "sidecarset b: spec.containers[0]: container c-2 is of sidecarset a too: the name is in the pod already",
		},
		"no empty image": {
			why: "there is nothing to run in the second container", is: sidecar.ErrNoEmptyImage,
			sets: []*v1beta1.SidecarSet{sidecarSet("a", of(container("c", hot(""))))},
			want: "sidecarset a: spec.containers[0]: container c: hotUpgradeEmptyImage is empty",
		},
		"unreadable hashes": {
			why:  "they may be those of other sets",
			pod:  broken(kruise.SidecarSetHashKey, "[]"),
			sets: []*v1beta1.SidecarSet{sidecarSet("a", of(container("c")))},
			want: "read annotation kruise.io/sidecarset-hash: json: cannot unmarshal array into Go value of type " +
				"map[string]json.RawMessage",
		},
		"unreadable work": {
			why:  "the same",
			pod:  broken(kruise.SidecarSetWorkingHotUpgradeContainerKey, `{`),
			sets: []*v1beta1.SidecarSet{sidecarSet("a", of(container("c", hot("empty"))))},
			want: "read annotation kruise.io/sidecarset-working-hotupgrade-container: unexpected end of JSON input",
		},
		"a bad patch": {
			why:  "it cannot be merged",
			pod:  broken("k", "{}"),
			sets: []*v1beta1.SidecarSet{sidecarSet("a", patches(v1beta1.SidecarSetMergePatchJsonPatchPolicy, "k", "{} {}"))},
			want: "sidecarset a: spec.patchPodMetadata[0]: annotation k: decode the patch: there is more than one JSON value",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.pod == nil {
				c.pod = pod
			}
			got, err := sidecar.Inject(c.pod, parse(c.sets...), at())
			if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s: want %s, got %v", c.why, c.want, err)
			}
			if got.Pod != nil || got.Notes != nil {
				t.Errorf("there is half an injection: %v", got)
			}
		})
	}
}

func TestInjectNothing(t *testing.T) {
	pod := podOf(own("main"))
	got, err := sidecar.Inject(pod, nil, at())
	if diff := cmp.Diff(sidecar.Injection{}, got); diff != "" || err != nil {
		t.Errorf("no set, no change: %v, %s", err, diff)
	}
	bare, _ := inject(t, pod, at(), sidecarSet("s", patches("", "k", "v"), volumes("v"), secrets("x")))
	want := pod.DeepCopy()
	want.Annotations = pairs("k", "v")
	sameAs(t, "a set without containers is but its metadata", want, bare)
}

func TestInjectPlainInit(t *testing.T) {
	plain := container("c", hot(""))
	got, _ := inject(t, podOf(own("main")), at(), sidecarSet("s", ofInit(plain)))
	want := corev1.Container{Name: "c", Image: "c:1", Env: []corev1.EnvVar{injected()}}
	sameAs(t, "a plain init container is never two", []corev1.Container{want}, got.Spec.InitContainers)
	if working, ok := got.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey]; ok {
		t.Errorf("there is something at work: %s", working)
	}
}
