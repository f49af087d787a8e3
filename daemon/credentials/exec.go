package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/imagepull"
)

const (
	// maxAnswer and maxComplaint bound what is kept of a program's outputs.
	maxAnswer    = 1 << 20
	maxComplaint = 512
	// graceOfPipes is how long a program's children may hold its outputs open after its end.
	graceOfPipes = time.Second
)

// request is what a program reads from its standard input.
type request struct {
	metav1.TypeMeta `json:",inline"`

	Image string `json:"image"`
}

// response is what it writes to its standard output.
type response struct {
	metav1.TypeMeta `json:",inline"`

	CacheKeyType  string                    `json:"cacheKeyType"`
	CacheDuration *metav1.Duration          `json:"cacheDuration,omitempty"`
	Auth          map[string]authentication `json:"auth,omitempty"`
}

type authentication struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// said is an answer with what it holds for, and for how long.
type said struct {
	keyring imagepull.Keyring
	kind    string
	lasts   time.Duration
}

// run asks the program.
func (p *plugin) run(ctx context.Context, repository string) (said, error) {
	input, err := json.Marshal(request{
		metav1.TypeMeta{Kind: "CredentialProviderRequest", APIVersion: p.APIVersion}, repository,
	})
	if err != nil {
		return said{}, fmt.Errorf("encode request: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	out, complaint := &bounded{most: maxAnswer}, &bounded{most: maxComplaint}
	//nolint:gosec // the program that the node's administrator has configured
	command := exec.CommandContext(within, filepath.Join(p.options.Plugins, p.Name), p.Args...)
	command.Stdin, command.Stdout, command.Stderr, command.WaitDelay = bytes.NewReader(input), out, complaint, graceOfPipes
	command.Env = slices.Clone(p.options.Env)
	for _, e := range p.Env {
		command.Env = append(command.Env, e.Name+"="+e.Value)
	}
	err = command.Run()
	switch {
	case err != nil && ctx.Err() != nil:
		return said{}, fmt.Errorf("ask plugin %s: %w", p.Name, ctx.Err())
	case err != nil && within.Err() != nil:
		return said{}, fmt.Errorf("ask plugin %s: no answer within %s", p.Name, p.options.Timeout)
	case err != nil:
		return said{}, fmt.Errorf("ask plugin %s: %w: %s", p.Name, err, strings.TrimSpace(complaint.kept.String()))
	case out.cut:
		return said{}, fmt.Errorf("ask plugin %s: its answer is longer than %d bytes", p.Name, maxAnswer)
	}
	answer, err := p.parse(out.kept.Bytes())
	if err != nil {
		return said{}, fmt.Errorf("ask plugin %s: %w", p.Name, err)
	}
	return answer, nil
}

// parse reads an answer. Errors have nothing of it that may be secret.
func (p *plugin) parse(data []byte) (said, error) {
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		return said{}, errors.New("its answer is no JSON, or has values of the wrong type")
	}
	if r.Kind != "CredentialProviderResponse" || r.APIVersion != p.APIVersion {
		return said{}, fmt.Errorf("it answers with a %.64q of %.64q, not with a CredentialProviderResponse of %q",
			r.Kind, r.APIVersion, p.APIVersion)
	}
	if !slices.Contains([]string{forImage, forRegistry, forAll}, r.CacheKeyType) {
		return said{}, fmt.Errorf("its answer has the unknown cacheKeyType %.64q", r.CacheKeyType)
	}
	s := said{kind: r.CacheKeyType, lasts: p.lasts()}
	if r.CacheDuration != nil {
		s.lasts = r.CacheDuration.Duration
	}
	entries, err := json.Marshal(r.Auth) //nolint:gosec // passwords, which only the keyring parses
	if err != nil {
		return said{}, errors.New("its answer cannot be read")
	}
	if s.keyring, err = imagepull.ReadKeyring(entries, corev1.SecretTypeDockercfg); err != nil {
		return said{}, err
	}
	return s, nil
}

// bounded keeps the beginning of what is written to it. The buffer is not embedded: it would read from a pipe by
// itself.
type bounded struct {
	kept bytes.Buffer
	most int
	cut  bool
}

// Write takes everything, and keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.kept.Len()
	if len(p) > room {
		b.cut = true
	}
	b.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}
