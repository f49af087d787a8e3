package revision

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fillDefaults fills in what the API server does in a pod spec, but for the pull policy of images. It is used to
// compare two specs, never to make one.
func fillDefaults(s *corev1.PodSpec) {
	set(&s.DNSPolicy, corev1.DNSClusterFirst)
	set(&s.RestartPolicy, corev1.RestartPolicyAlways)
	set(&s.SchedulerName, corev1.DefaultSchedulerName)
	point(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	point(&s.SecurityContext, corev1.PodSecurityContext{})
	point(&s.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	// Two names of one field.
	set(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	set(&s.DeprecatedServiceAccount, s.ServiceAccountName)
	for i := range s.InitContainers {
		fillContainer(&s.InitContainers[i])
		fillHostPorts(s, &s.InitContainers[i])
	}
	for i := range s.Containers {
		fillContainer(&s.Containers[i])
		fillHostPorts(s, &s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		roundAmounts(s.EphemeralContainers[i].Resources.Limits, s.EphemeralContainers[i].Resources.Requests)
	}
	for i := range s.Volumes {
		fillVolume(&s.Volumes[i].VolumeSource)
	}
	roundAmounts(s.Overhead)
	if s.Resources != nil {
		roundAmounts(s.Resources.Limits, s.Resources.Requests)
	}
	for i := range s.TopologySpreadConstraints {
		c := &s.TopologySpreadConstraints[i]
		honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
		point(&c.NodeAffinityPolicy, honor)
		point(&c.NodeTaintsPolicy, ignore)
	}
}

func fillContainer(c *corev1.Container) {
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			set(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		fillProbe(p)
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				fillHTTPGet(h.HTTPGet)
			}
		}
	}
	fillRequests(&c.Resources)
	roundAmounts(c.Resources.Limits, c.Resources.Requests)
}

// roundAmounts rounds amounts up to thousandths, as the API server stores them: 62.5m of cpu is 63m.
func roundAmounts(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, amount := range list {
			if !amount.RoundUp(resource.Milli) {
				list[name] = amount
			}
		}
	}
}

// fillRequests gives a resource that has only a limit the same request.
func fillRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, has := r.Requests[name]; has {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

func fillProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	set(&p.TimeoutSeconds, 1)
	set(&p.PeriodSeconds, 10)
	set(&p.SuccessThreshold, 1)
	set(&p.FailureThreshold, 3)
	fillHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		point(&p.GRPC.Service, "")
	}
}

func fillHTTPGet(g *corev1.HTTPGetAction) {
	if g != nil {
		set(&g.Path, "/")
		set(&g.Scheme, corev1.URISchemeHTTP)
	}
}

// fillHostPorts: in the network of the host a container's port is the host's.
func fillHostPorts(s *corev1.PodSpec, c *corev1.Container) {
	if !s.HostNetwork {
		return
	}
	for i := range c.Ports {
		set(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
	}
}

func fillVolume(v *corev1.VolumeSource) {
	switch {
	case v.Secret != nil:
		point(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		point(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		point(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		fillFieldRefs(v.DownwardAPI.Items)
	case v.Projected != nil:
		fillProjected(v.Projected)
	case v.HostPath != nil:
		point(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		point(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundAmounts(claim.Resources.Limits, claim.Resources.Requests)
	case v.ISCSI != nil:
		set(&v.ISCSI.ISCSIInterface, "default")
	case v.AzureDisk != nil:
		fillAzureDisk(v.AzureDisk)
	}
}

func fillProjected(p *corev1.ProjectedVolumeSource) {
	point(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if d := p.Sources[i].DownwardAPI; d != nil {
			fillFieldRefs(d.Items)
		}
		if t := p.Sources[i].ServiceAccountToken; t != nil {
			point(&t.ExpirationSeconds, 60*60)
		}
	}
}

func fillFieldRefs(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		if files[i].FieldRef != nil {
			set(&files[i].FieldRef.APIVersion, "v1")
		}
	}
}

func fillAzureDisk(d *corev1.AzureDiskVolumeSource) {
	point(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
	point(&d.Kind, corev1.AzureSharedBlobDisk)
	point(&d.FSType, "ext4")
	point(&d.ReadOnly, false)
}

// latest reports whether an image is the latest of its name: it has that tag, or neither tag nor digest.
func latest(image string) bool {
	if strings.Contains(image, "@") {
		return false
	}
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	return !tagged || tag == "latest"
}

func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func point[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
