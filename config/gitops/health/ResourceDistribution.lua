local function answer(status, message) return { status = status, message = message } end
local status = obj.status or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
if (status.failed or 0) > 0 then return answer("Degraded", status.failed .. " namespaces lack the copy") end
if (status.succeeded or 0) < (status.desired or 0) then
  return answer("Progressing", (status.succeeded or 0) .. " of " .. status.desired .. " namespaces have the copy")
end
return answer("Healthy", (status.succeeded or 0) .. " namespaces have the copy")
