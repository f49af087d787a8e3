// Package podtemplate has pod templates judged and completed by the API server, for admission webhooks of workloads.
//
// Check creates a core PodTemplate as a dry run: nothing is stored, and what comes back is the template with all its
// defaults, or the exact fields that are wrong. So a template is right when the API server that will create the pods says
// so, whatever its version; there is no copy of its rules here to grow old.
//
// Do not use it where a template was not changed: it costs a call, and what is stored has been judged before.
//
// Laws:
//   - One call per Check, none elsewhere, and no memory between two calls. A second one only where Template.TellUnknown is set
//     and there is a field that the API server does not know, or a value that it cannot read.
//   - The input is not changed. Fields that this program does not know are sent as they are, and stay.
//   - A template that is wrong is a Verdict with faults. An error means that there is no verdict: see UnavailableError.
//
// In use:
//
//	content := podtemplate.Prepare(template, podtemplate.Defaults{})
//	verdict, err := podtemplate.Check(ctx, client, podtemplate.Template{
//		Namespace: "shop", Content: content, Path: field.NewPath("spec", "template"),
//	})
//	switch {
//	case err != nil: // nobody judged it
//	case len(verdict.Faults) > 0: // refuse, naming the fields
//	default:
//		patch := podtemplate.Fill("/spec/template", template, verdict.Defaulted) // or Refill, in an update
//	}
//
// The caller needs the verb create on podtemplates. Quotas, policies and webhooks that concern PodTemplates are asked as
// well; one that refuses them refuses the workload.
package podtemplate
