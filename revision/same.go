package revision

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Same reports whether two templates are equal after the API server has set defaults and rounded quantities. Pods of
// such templates are equal.
func Same(a, b *corev1.PodTemplateSpec) bool {
	if apiequality.Semantic.DeepEqual(a, b) {
		return true
	}
	return apiequality.Semantic.DeepEqual(Comparable(a, b))
}

// Comparable returns normalized copies of two templates. The copies differ only if pods created from the templates
// differ. Comparable sets the defaults of the API server, rounds quantities up to thousandths as the API server does,
// and copies a default imagePullPolicy to the template that lacks it.
func Comparable(a, b *corev1.PodTemplateSpec) (*corev1.PodTemplateSpec, *corev1.PodTemplateSpec) {
	a, b = a.DeepCopy(), b.DeepCopy()
	a.CreationTimestamp, b.CreationTimestamp = metav1.Time{}, metav1.Time{}
	fillDefaults(&a.Spec)
	fillDefaults(&b.Spec)
	alignPullPolicies(a.Spec.Containers, b.Spec.Containers)
	alignPullPolicies(a.Spec.InitContainers, b.Spec.InitContainers)
	return a, b
}

// SameData reports whether the data of two ControllerRevisions is equivalent: SameRoles holds for their templates, and
// all other fields are equal. A second template outside spec.template is such another field. Data without a template
// must be equal byte by byte. Use Layout.Same for templates at other paths.
func SameData(a, b []byte) bool { return (*Layout)(nil).Same(a, b) }

// alignPullPolicies copies a default imagePullPolicy from a container to the container of the same name without one.
// Two policies are defaults: that of the API server, which depends on the tag, and Always, which the mutating webhooks
// of OpenKruise set.
func alignPullPolicies(a, b []corev1.Container) {
	for i := range a {
		for j := range b {
			switch x, y := &a[i], &b[j]; {
			case x.Name != y.Name:
			case x.ImagePullPolicy == "" && isDefaultPullPolicy(y):
				x.ImagePullPolicy = y.ImagePullPolicy
			case y.ImagePullPolicy == "" && isDefaultPullPolicy(x):
				y.ImagePullPolicy = x.ImagePullPolicy
			}
		}
	}
}

// isDefaultPullPolicy reports whether the API server or a mutating webhook may have set the pull policy.
func isDefaultPullPolicy(c *corev1.Container) bool {
	return c.ImagePullPolicy == corev1.PullAlways || c.ImagePullPolicy == corev1.PullIfNotPresent && !latest(c.Image)
}

// fillDefaults sets the defaults of the API server in a pod spec, except imagePullPolicy. The result is for comparison
// only, never for creating pods.
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
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			fillContainer(s, &list[i])
		}
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
		point(&c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor)
		point(&c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore)
	}
}

func fillContainer(s *corev1.PodSpec, c *corev1.Container) {
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if s.HostNetwork { // the port of the container is that of the host
			set(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
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

// roundAmounts rounds quantities up to thousandths, as the API server stores them: 62.5m of cpu is 63m. RoundUp returns
// false if it lost precision.
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
		if _, ok := r.Requests[name]; ok {
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
