local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
for _, c in ipairs(status.conditions or {}) do
  if c.status == "True" and (c.type == "Stalled" or c.type == "FailedCreatePod" or c.type == "FailedUpdatePod") then
    return answer("Degraded", c.type .. ": " .. (c.message or c.reason or ""))
  end
end
local rolling = (spec.updateStrategy or {}).rollingUpdate or {}
if rolling.paused then return answer("Suspended", "the rollout is paused") end
local wanted = spec.replicas or 1
if (status.availableReplicas or 0) < wanted or (status.replicas or 0) > wanted then
  return answer("Progressing", (status.availableReplicas or 0) .. " of " .. wanted .. " pods are available")
end
if (spec.updateStrategy or {}).type == "OnDelete" then return answer("Healthy", "pods are updated when they are deleted") end
local kept = tonumber(rolling.partition or 0)
if kept == nil then
  return answer("Healthy", (status.updatedReplicas or 0) .. " pods are updated, with the partition " .. rolling.partition)
end
local due = math.max(wanted - kept, 0)
if (status.updatedReplicas or 0) < due then
  return answer("Progressing", (status.updatedReplicas or 0) .. " of " .. due .. " pods are updated")
end
return answer("Healthy", due < wanted and "the partition keeps " .. (wanted - due) .. " pods" or "")
