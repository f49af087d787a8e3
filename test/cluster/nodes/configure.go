//go:build linux

package nodes

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kruisekit/kruisekit/test/cluster/packages"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

// sandboxImage is what every pod's sandbox runs.
const sandboxImage = "kruisekit.dev/pause:1"

// configure writes all that the programs of a node read.
func (c Config) configure(p *plane.Plane, node int) error {
	user, err := p.Authority.Client("kubelet-"+Name(node), "system:node:"+Name(node), "system:nodes")
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(p.Authority.File)
	if err != nil {
		return fmt.Errorf("configure %s: %w", Name(node), err)
	}
	for _, dir := range []string{"var/lib", "var/log", "run/lock"} {
		if err := os.MkdirAll(c.inNode(node, dir), 0o755); err != nil {
			return fmt.Errorf("configure %s: %w", Name(node), err)
		}
	}
	for name, content := range map[string]string{
		"kubeconfig":                     string(p.Authority.Kubeconfig(p.Server, user)),
		"ca.crt":                         string(authority),
		"resolv.conf":                    "",
		"cni/10-bridge.conflist":         fmt.Sprintf(cniConfig, podRange(node)),
		"registries/_default/hosts.toml": fmt.Sprintf(registryConfig, RegistryURL),
		"containerd.toml":                fmt.Sprintf(containerdConfig, sandboxImage, packages.NetworkPlugins()),
		"kubelet.yaml":                   fmt.Sprintf(kubeletConfig, cgroup(node)),
	} {
		path := c.inNode(node, filepath.Join(own, name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("configure %s: %w", Name(node), err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("configure %s: %w", Name(node), err)
		}
	}
	return nil
}

const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// With the server named too, an image that the registry lacks is known to be missing at once: else containerd asks the
// registry that the image's name says.
const registryConfig = `server = "%[1]s"
[host."%[1]s"]
  capabilities = ["pull", "resolve"]
`

const containerdConfig = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "%s"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "` + own + `/registries"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["%s"]
  conf_dir = "` + own + `/cni"
[plugins.'io.containerd.internal.v1.opt']
  path = "/var/lib/containerd/opt"
`

// The image garbage collector is off: on a full disk it would remove images that a test has just pulled. For the same
// reason the kubelet evicts only when next to nothing is left: one per cent of a large disk is more than all tests
// write. Containers that end again and again are started soon, so that no test waits for minutes; kubelets before 1.35
// have a gate for it.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: ` + own + `/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://` + socket + `
cgroupDriver: cgroupfs
cgroupRoot: /%s
crashLoopBackOff: {maxContainerRestartPeriod: 2s}
featureGates: {KubeletCrashLoopBackOffMax: true}
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {memory.available: 100Mi, nodefs.available: 100Mi, imagefs.available: 100Mi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
maxPods: 200
registryPullQPS: 0
resolvConf: ` + own + `/resolv.conf
serializeImagePulls: false
`
