package sidecar

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// container returns a container of the set as the pod gets it. Its own fields take precedence over what containers of
// the pod lend.
func (in *injector) container(set *Set, sc *part) (*corev1.Container, error) {
	c := sc.Container.DeepCopy()
	if sc.ResourcesPolicy != nil {
		resources, err := in.resources(set, sc)
		if err != nil {
			return nil, err
		}
		c.Resources = resources
	}
	in.collectVolumes(set, c)
	noted, lent := len(in.notes), in.shared
	env := in.transferred(set, sc)
	if former := in.former(set, sc); former != nil {
		in.notes = in.notes[:noted] // the earlier admission noted what is missing
		// First, as it has all that was lent, in that order.
		lent = share(slices.Concat([]*corev1.Container{former}, in.sources))
		env = slices.Concat(former.Env, env)
	}
	if sc.ShareVolumePolicy.Type == appsv1beta1.ShareVolumePolicyEnabled {
		in.addMounts(set, c, lent.mounts)
		env = append(env, lent.env...)
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: kruise.SidecarInjectedEnvName, Value: "true"})
	addEnv(c, env)
	if p := sc.ShareVolumeDevicePolicy; p != nil && p.Type == appsv1beta1.ShareVolumePolicyEnabled {
		in.addDevices(set, c, lent.devices)
	}
	return c, nil
}

// addEnv adds the variables that the container does not have.
func addEnv(c *corev1.Container, env []corev1.EnvVar) {
	known := make(map[string]bool, len(c.Env))
	for i := range c.Env {
		known[c.Env[i].Name] = true
	}
	for i := range env {
		if name := env[i].Name; !known[name] {
			known[name] = true
			c.Env = append(c.Env, *env[i].DeepCopy())
		}
	}
}

// collectVolumes collects the volumes of the set that a container mounts itself.
func (in *injector) collectVolumes(set *Set, c *corev1.Container) {
	names := make([]string, 0, len(c.VolumeMounts)+len(c.VolumeDevices))
	for i := range c.VolumeMounts {
		names = append(names, c.VolumeMounts[i].Name)
	}
	for i := range c.VolumeDevices {
		names = append(names, c.VolumeDevices[i].Name)
	}
	for _, name := range names {
		there := findVolume(in.pod.Spec.Volumes, name)
		if there == nil {
			there = findVolume(in.volumes, name)
		}
		volume := findVolume(set.object.Spec.Volumes, name)
		switch {
		case volume == nil && there == nil:
			in.note(NoteVolumeMissing, set, "container %s mounts volume %s, which neither the set nor the pod has", c.Name, name)
		case volume == nil:
		case there == nil:
			in.volumes = append(in.volumes, *volume.DeepCopy())
			take(&in.unknown.Volumes, set.unknown.Volumes, name, name)
			in.lenders = append(in.lenders, set)
		case !equality.Semantic.DeepEqual(volume, there):
			in.note(NoteVolumeKept, set, "container %s gets the volume %s of %s, which is another than that of the set", c.Name,
				name, in.lender(name))
		}
	}
}

// lender returns the name of the owner of a volume.
func (in *injector) lender(volume string) string {
	i := slices.IndexFunc(in.volumes, func(v corev1.Volume) bool { return v.Name == volume })
	if i < 0 {
		return "the pod"
	}
	return "sidecarset " + in.lenders[i].Name()
}

func findVolume(volumes []corev1.Volume, name string) *corev1.Volume {
	for i := range volumes {
		if volumes[i].Name == name {
			return &volumes[i]
		}
	}
	return nil
}

// addMounts adds the mounts that other containers lend.
func (in *injector) addMounts(set *Set, c *corev1.Container, lent []corev1.VolumeMount) {
	volumes := byPath(c, len(lent))
	for _, m := range lent {
		if other, taken := volumes[m.MountPath]; taken {
			if other != m.Name {
				in.note(NoteNotShared, set, "container %s has another volume than %s at %s", c.Name, m.Name, m.MountPath)
			}
			continue
		}
		volumes[m.MountPath] = m.Name
		c.VolumeMounts = append(c.VolumeMounts, *m.DeepCopy())
	}
}

// addDevices adds the devices that other containers lend.
func (in *injector) addDevices(set *Set, c *corev1.Container, lent []corev1.VolumeDevice) {
	volumes := byPath(c, len(lent))
	for _, d := range lent {
		if other, taken := volumes[d.DevicePath]; taken {
			if other != d.Name {
				in.note(NoteNotShared, set, "container %s has another volume than %s at %s", c.Name, d.Name, d.DevicePath)
			}
			continue
		}
		volumes[d.DevicePath] = d.Name
		c.VolumeDevices = append(c.VolumeDevices, d)
	}
}

// byPath returns the volumes that a container has, by path: the first of a path, and a mount rather than a device. A
// container can lend as much as fits into a request, and is not validated yet.
func byPath(c *corev1.Container, more int) map[string]string {
	volumes := make(map[string]string, len(c.VolumeMounts)+len(c.VolumeDevices)+more)
	for i := range c.VolumeMounts {
		if m := &c.VolumeMounts[i]; !has(volumes, m.MountPath) {
			volumes[m.MountPath] = m.Name
		}
	}
	for i := range c.VolumeDevices {
		if d := &c.VolumeDevices[i]; !has(volumes, d.DevicePath) {
			volumes[d.DevicePath] = d.Name
		}
	}
	return volumes
}

func has(volumes map[string]string, path string) bool {
	_, taken := volumes[path]
	return taken
}

// shared is what containers of the pod lend, in their order.
type shared struct {
	mounts  []corev1.VolumeMount
	devices []corev1.VolumeDevice
	// env are the variables that the mounts name in their sub-paths.
	env []corev1.EnvVar
}

func share(sources []*corev1.Container) shared {
	var s shared
	for _, c := range sources {
		s.devices = append(s.devices, c.VolumeDevices...)
		var env map[string]*corev1.EnvVar // few containers have a sub-path with variables
		for i := range c.VolumeMounts {
			s.mounts = append(s.mounts, c.VolumeMounts[i])
			for _, name := range variables(c.VolumeMounts[i].SubPathExpr) {
				if env == nil {
					env = envByName(c.Env)
				}
				if e := env[name]; e != nil {
					s.env = append(s.env, *e)
				}
			}
		}
	}
	return s
}

// envByName returns the last variable of each name, which is the one that counts.
func envByName(env []corev1.EnvVar) map[string]*corev1.EnvVar {
	all := make(map[string]*corev1.EnvVar, len(env))
	for i := range env {
		all[env[i].Name] = &env[i]
	}
	return all
}

// lastEnv returns the last variable of a name, which is the one that counts.
func lastEnv(env []corev1.EnvVar, name string) *corev1.EnvVar {
	for i := len(env) - 1; i >= 0; i-- {
		if env[i].Name == name {
			return &env[i]
		}
	}
	return nil
}

// variables returns the names in the references $(NAME) of a text.
func variables(text string) []string {
	var names []string
	for {
		_, after, found := strings.Cut(text, "$(")
		if !found {
			return names
		}
		text = after
		name, _, closed := strings.Cut(after, ")")
		if closed && isVariable(name) {
			names = append(names, name)
		}
	}
}

// isVariable reports whether an environment variable can have the name.
func isVariable(name string) bool {
	for i, r := range name {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("-._", r)
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
