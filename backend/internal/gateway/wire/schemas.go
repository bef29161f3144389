package wire

// These are the allow-lists. All other fields are refused, because hosted tools, stored prompts and conversations,
// other service tiers, several answers and predictions cost tokens that the bound of a call does not cover.
var (
	anyText   = text(textInBytes)
	name      = text(maxName)
	id        = anyText // some providers put the model's reasoning into the ID of a call
	onlyNull  = orNull(only("null", ""))
	noMore    = only("1", ": send one request for each answer")
	oneOutput = orNull(integer(1, maxOutput))
	unit      = orNull(number(0, 1))

	schemas = map[API]rule{Chat: chatBody, Responses: responsesBody, Messages: messagesBody}
)

// common adds the fields that all interfaces share.
func common(own fields) fields {
	all := fields{
		"model": take(name), "stream": take(orNull(boolean)), "temperature": orNull(number(0, 2)), "top_p": unit,
	}
	for field, r := range own {
		all[field] = r
	}
	return all
}

// function describes a tool that the app runs.
var function = fields{
	"name": name, "description": orNull(anyText), "parameters": orNull(anyObject), "strict": orNull(boolean),
}

func functionWithType() fields {
	f := fields{"type": word("function")}
	for field, r := range function {
		f[field] = r
	}
	return f
}

// format returns the rule for the format of an answer. The schema's members are in the same object as its type, or in a
// nested object.
func format(schema rule) rule {
	return variant("type", "", map[string]rule{
		"text":        object(fields{"type": anything}),
		"json_object": object(fields{"type": anything}),
		"json_schema": schema,
	})
}

var jsonSchema = fields{
	"name": name, "description": orNull(anyText), "schema": anyObject, "strict": orNull(boolean),
}

// Rules for the chat completions interface.
var (
	chatText  = fields{"type": word("text"), "text": anyText}
	chatImage = image(object(fields{
		"type": word("image_url"),
		"image_url": object(fields{
			"url": anyText, "detail": orNull(word("auto", "low", "high", "original")),
		}, "url"),
	}, "image_url"))
	refusal = fields{"type": word("refusal"), "refusal": anyText}

	texts = byKind(anyText, list(maxList, variant("type", "", map[string]rule{"text": object(chatText, "text")})), nil)

	chatCall = answered(fields{
		"id": id, "type": word("function"), "function": answered(fields{"name": name, "arguments": anyText}, "name"),
		"extra_content": anyObject, // Gemini requires it back
	}, "id", "function")

	chatMessage = variant("role", "", map[string]rule{
		"developer": object(fields{"role": anything, "content": texts, "name": name}, "content"),
		"system":    object(fields{"role": anything, "content": texts, "name": name}, "content"),
		"user": object(fields{"role": anything, "name": name,
			"content": byKind(anyText, list(maxList, variant("type", "",
				map[string]rule{"text": object(chatText, "text"), "image_url": chatImage})), nil)}, "content"),
		"assistant": answered(fields{"role": anything, "name": name, "refusal": anyText,
			"content": byKind(anyText, list(maxList, answeredPart(map[string]rule{
				"text": answered(chatText, "text"), "refusal": answered(refusal, "refusal")})), nil),
			"tool_calls": list(maxTools, chatCall), "audio": onlyNull, "function_call": onlyNull}),
		"tool": object(fields{"role": anything, "content": texts, "tool_call_id": id}, "content", "tool_call_id"),
	})

	chatBody = object(common(fields{
		"messages":   list(maxList, chatMessage),
		"max_tokens": take(oneOutput), "max_completion_tokens": take(oneOutput),
		"stream_options": take(orNull(object(fields{"include_usage": orNull(boolean), "include_obfuscation": dropped}))),
		"n":              take(orNull(noMore)), "store": take(orNull(only("false", ""))),
		"frequency_penalty": orNull(number(-2, 2)), "presence_penalty": orNull(number(-2, 2)),
		"stop": orNull(byKind(name, list(16, name), nil)), "seed": orNull(integer(-1<<53, 1<<53)),
		"tools": orNull(list(maxTools, variant("type", "", map[string]rule{
			"function": object(fields{"type": anything, "function": object(function, "name")}, "function"),
		}))),
		"tool_choice": byKind(word("none", "auto", "required"), nil, object(fields{
			"type": word("function"), "function": object(fields{"name": name}, "name"),
		}, "type", "function")),
		"parallel_tool_calls": boolean,
		"response_format": orNull(format(object(fields{
			"type": anything, "json_schema": object(jsonSchema, "name"),
		}, "json_schema"))),
		"reasoning_effort": orNull(name), "verbosity": orNull(word("low", "medium", "high")),
		"logit_bias": orNull(anyObject), "logprobs": note(orNull(boolean)), "top_logprobs": note(orNull(integer(0, 20))),
		"user": orNull(name), "safety_identifier": orNull(name), "prompt_cache_key": orNull(name),
	}), "model", "messages")
)

// Rules for the responses interface.
var (
	inputText  = object(fields{"type": word("input_text"), "text": anyText}, "text")
	inputImage = image(object(fields{"type": word("input_image"), "image_url": anyText,
		"detail": orNull(word("auto", "low", "high", "original")), "file_id": onlyNull}, "image_url"))
	outputText = answered(fields{"type": word("output_text"), "text": anyText}, "text")

	inputParts = map[string]rule{"input_text": inputText, "input_image": inputImage}

	inputMessage = object(fields{
		"type": anything, "role": anything, "id": orNull(id), "status": orNull(name),
		"content": byKind(anyText, list(maxList, variant("type", "", inputParts)), nil),
	}, "content")

	responsesItem = variant("type", "message", map[string]rule{
		"message": variant("role", "", map[string]rule{
			"user": inputMessage, "system": inputMessage, "developer": inputMessage,
			"assistant": answered(fields{
				"type": anything, "role": anything, "id": id, "status": name, "phase": name,
				"content": byKind(anyText, list(maxList, answeredPart(map[string]rule{
					"input_text": inputText, "output_text": outputText, "refusal": answered(refusal, "refusal"),
				})), nil),
			}, "content"),
		}),
		"function_call": answered(fields{"type": anything, "id": id, "call_id": id, "name": name,
			"arguments": anyText, "status": name}, "call_id", "name"),
		"function_call_output": object(fields{"type": anything, "id": orNull(id), "call_id": id,
			"output": byKind(anyText, list(maxList, variant("type", "", inputParts)), nil),
			"status": orNull(name)}, "call_id", "output"),
		"reasoning": answered(fields{"type": anything, "id": id, "status": name, "encrypted_content": anyText,
			"summary": list(maxList, answeredPart(map[string]rule{
				"summary_text": answered(fields{"type": anything, "text": anyText}, "text")}))}),
	})

	responsesBody = object(common(fields{
		"input":        byKind(anyText, list(maxList, responsesItem), nil),
		"instructions": orNull(anyText), "max_output_tokens": take(oneOutput),
		"stream_options": take(orNull(object(fields{"include_obfuscation": orNull(boolean)}))),
		"store":          take(orNull(only("false", ": nothing is stored"))), "background": take(orNull(only("false", ""))),
		"previous_response_id": onlyNull, "conversation": onlyNull, "prompt": onlyNull,
		"include": orNull(list(8, word("reasoning.encrypted_content"))),
		"tools": orNull(list(maxTools, variant("type", "", map[string]rule{
			"function": object(functionWithType(), "name"),
		}))),
		"tool_choice": byKind(word("none", "auto", "required"), nil,
			object(fields{"type": word("function"), "name": name}, "type", "name")),
		"parallel_tool_calls": orNull(boolean), "truncation": orNull(word("disabled", "auto")),
		"text": orNull(object(fields{"verbosity": orNull(word("low", "medium", "high")),
			"format": format(object(fields{"type": anything, "name": name, "description": orNull(anyText),
				"schema": anyObject, "strict": orNull(boolean)}, "name", "schema"))})),
		"reasoning":    orNull(object(fields{"effort": orNull(name), "summary": orNull(name)})),
		"top_logprobs": note(orNull(integer(0, 20))),
		"user":         orNull(name), "safety_identifier": orNull(name), "prompt_cache_key": orNull(name),
	}), "model", "input")
)

// Rules for the messages interface.
var (
	// Only the five-minute cache is allowed, because the one-hour cache has another price.
	cacheControl = orNull(object(fields{"type": word("ephemeral"), "ttl": orNull(word("5m"))}, "type"))

	textBlock = object(fields{"type": anything, "text": anyText, "cache_control": cacheControl,
		"citations": onlyNull}, "text")
	imageBlock = image(object(fields{"type": anything, "cache_control": cacheControl,
		"source": variant("type", "", map[string]rule{
			"base64": object(fields{"type": anything, "media_type": name, "data": anyText}, "media_type", "data"),
			"url":    object(fields{"type": anything, "url": anyText}, "url"),
		})}, "source"))
	resultBlock = object(fields{"type": anything, "tool_use_id": id, "is_error": orNull(boolean),
		"cache_control": cacheControl, "content": byKind(anyText, list(maxList,
			variant("type", "", map[string]rule{"text": textBlock, "image": imageBlock})), nil)}, "tool_use_id")

	userMessage = object(fields{"role": anything, "content": byKind(anyText, list(maxList, variant("type", "",
		map[string]rule{"text": textBlock, "image": imageBlock, "tool_result": resultBlock})), nil)}, "content")
	modelMessage = answered(fields{"role": anything, "content": byKind(anyText, list(maxList, answeredPart(
		map[string]rule{
			"text": answered(fields{"type": anything, "text": anyText, "cache_control": cacheControl}, "text"),
			"tool_use": answered(fields{"type": anything, "id": id, "name": name, "input": anyObject,
				"cache_control": cacheControl}, "id", "name", "input"),
			"thinking":          answered(fields{"type": anything, "thinking": anyText, "signature": anyText}),
			"redacted_thinking": answered(fields{"type": anything, "data": anyText}),
		})), nil)}, "content")

	messagesBody = object(common(fields{
		"messages": list(maxList, variant("role", "",
			map[string]rule{"user": userMessage, "assistant": modelMessage})),
		"max_tokens": take(oneOutput), "top_k": orNull(integer(0, 1<<31)),
		"system": orNull(byKind(anyText, list(maxList,
			variant("type", "", map[string]rule{"text": textBlock})), nil)),
		"stop_sequences": orNull(list(64, name)),
		"tools": orNull(list(maxTools, variant("type", "custom", map[string]rule{
			"custom": object(fields{"type": anything, "name": name, "description": anyText, "input_schema": anyObject,
				"strict": orNull(boolean), "cache_control": cacheControl}, "name", "input_schema"),
		}))),
		"tool_choice": orNull(object(fields{"type": word("auto", "any", "tool", "none"), "name": name,
			"disable_parallel_tool_use": boolean}, "type")),
		"thinking": orNull(object(fields{"type": word("enabled", "disabled", "adaptive"),
			"budget_tokens": integer(1, maxOutput), "display": name}, "type")),
		"output_config": orNull(object(fields{"effort": orNull(name)})),
		"metadata":      orNull(object(fields{"user_id": orNull(name)})),
		"service_tier":  orNull(word("standard_only")),
	}), "model", "messages")
)
