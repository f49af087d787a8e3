package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	configGroup   = "kubelet.config.k8s.io"
	configKind    = "CredentialProviderConfig"
	protocolGroup = "credentialprovider.kubelet.k8s.io"
)

// versions of both groups, whose fields are the same as far as they are used here.
func versions() []string { return []string{"v1", "v1beta1", "v1alpha1"} }

// config is a CredentialProviderConfig.
type config struct {
	metav1.TypeMeta `json:",inline"`

	Providers []provider `json:"providers"`
}

// provider is a plugin, as it is configured.
type provider struct {
	// Name is that of the program, in the directory of plugins.
	Name string `json:"name"`
	// MatchImages are the patterns of repositories that it has credentials for.
	MatchImages []string `json:"matchImages"`
	// DefaultCacheDuration is for how long its answers hold where they do not say it.
	DefaultCacheDuration *metav1.Duration `json:"defaultCacheDuration"`
	// APIVersion of the protocol that it speaks.
	APIVersion string `json:"apiVersion"`
	// Args and Env it is run with, besides the environment of the process.
	Args []string `json:"args,omitempty"`
	Env  []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env,omitempty"`
	// TokenAttributes are for plugins that log in as the service account of a pod.
	TokenAttributes map[string]any `json:"tokenAttributes,omitempty"`
}

// readConfig gives no plugins where there is no file.
func readConfig(path string) ([]provider, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path) //nolint:gosec // the file that the caller names
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read plugin configuration: %w", err)
	}
	providers, err := parseConfig(data)
	if err != nil {
		return nil, fmt.Errorf("plugin configuration %s: %w", path, err)
	}
	return providers, nil
}

// parseConfig is as strict as a kubelet: a field that is misspelt would otherwise send images without credentials.
func parseConfig(data []byte) ([]provider, error) {
	var c config
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if c.Kind != configKind || !isVersion(configGroup, c.APIVersion) {
		return nil, fmt.Errorf("is a %s of %q, not a %s of %s", c.Kind, c.APIVersion, configKind, configGroup)
	}
	var faults []error
	if len(c.Providers) == 0 {
		faults = append(faults, errors.New("providers: at least one is needed"))
	}
	names := map[string]bool{}
	for i, p := range c.Providers {
		for _, fault := range p.faults() {
			faults = append(faults, fmt.Errorf("providers[%d].%s", i, fault))
		}
		if names[p.Name] {
			faults = append(faults, fmt.Errorf("providers[%d].name: %q stands twice", i, p.Name))
		}
		names[p.Name] = true
	}
	return c.Providers, errors.Join(faults...)
}

func (p provider) faults() []string {
	var faults []string
	if p.Name == "" || p.Name == "." || p.Name == ".." || strings.ContainsAny(p.Name, "/\\ \t\r\n") {
		faults = append(faults, fmt.Sprintf("name: %q is not the name of a file", p.Name))
	}
	if len(p.MatchImages) == 0 {
		faults = append(faults, "matchImages: at least one pattern is needed")
	}
	if slices.Contains(p.MatchImages, "") {
		faults = append(faults, "matchImages: a pattern is empty")
	}
	switch {
	case p.DefaultCacheDuration == nil:
		faults = append(faults, "defaultCacheDuration: is needed")
	case p.DefaultCacheDuration.Duration < 0:
		faults = append(faults, "defaultCacheDuration: is below zero")
	}
	if !isVersion(protocolGroup, p.APIVersion) {
		faults = append(faults,
			fmt.Sprintf("apiVersion: %q is not of %s/%s", p.APIVersion, protocolGroup, strings.Join(versions(), ", ")))
	}
	if len(p.TokenAttributes) > 0 {
		faults = append(faults,
			"tokenAttributes: tokens of service accounts are not supported, there is no pod that they could be of")
	}
	return faults
}

func isVersion(group, apiVersion string) bool {
	return slices.ContainsFunc(versions(), func(v string) bool { return apiVersion == group+"/"+v })
}

// lasts is for how long an answer holds that says nothing else.
func (p provider) lasts() time.Duration { return p.DefaultCacheDuration.Duration }
