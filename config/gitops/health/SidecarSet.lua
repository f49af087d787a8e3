local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
local strategy = spec.updateStrategy or {}
if strategy.type == "NotUpdate" then return answer("Healthy", "pods get new sidecars when they are created") end
if strategy.paused then return answer("Suspended", "the rollout is paused") end
local wanted = status.matchedPods or 0
local kept = strategy.partition or 0
if strategy.selector or kept ~= 0 and kept ~= "0%" and kept ~= "0" then
  return answer("Healthy", (status.updatedPods or 0) .. " of " .. wanted .. " pods are updated, as far as the rollout goes")
end
if (status.updatedReadyPods or 0) < wanted then
  return answer("Progressing", (status.updatedReadyPods or 0) .. " of " .. wanted .. " pods are updated and ready")
end
return answer("Healthy", "")
