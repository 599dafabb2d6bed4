"""Prompts with typed arguments, state and errors, with FastMCP. `crates/toolgate/examples/prompt_server.rs` has the same
features with Toolgate."""

from dataclasses import dataclass
from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.prompts import Message, PromptResult
from pydantic import Field


@dataclass
class Preferences:
    language: str = "English"
    level: str = "intermediate"


mcp = FastMCP("prompts", version="1.0.0", instructions="Prompts for code, data, texts, errors and lessons.")
preferences = Preferences()


@mcp.prompt
def greeting() -> list[Message]:
    """Greets, to start a conversation."""
    return [
        Message("Hello! I would like to talk."),
        Message("Hello! What would you like to talk about?", role="assistant"),
    ]


@mcp.prompt
def code_review(
    language: Annotated[str, Field(description="Programming language of the code.")],
    file_path: Annotated[str, Field(description="Path of the file.")],
    focus_areas: Annotated[list[str], Field(description="What to look at, as a JSON list.")] = [
        "correctness",
        "performance",
    ],
) -> PromptResult:
    """Reviews code with the best practices of its language."""
    messages = [
        Message(f"You review {language} code for a reader of {preferences.level} level.", role="assistant"),
        Message(f"Review the code of {file_path}. Focus on: {', '.join(focus_areas)}"),
    ]
    return PromptResult(messages, description=f"Review of {file_path}")


@mcp.prompt
def data_analysis(
    data_type: Annotated[str, Field(description="Type of the data: csv, json or logs.")],
    analysis_type: Annotated[str, Field(description="Kind of analysis.")],
    ctx: Context,
    context: Annotated[str, Field(description="More about the data.")] = "none",
) -> list[Message]:
    """Analyzes data."""
    return [
        Message(f"My {data_type} data needs a {analysis_type} analysis. Context: {context}"),
        Message(f"I will write the analysis over MCP {ctx.request_context.protocol_version}.", role="assistant"),
    ]


@mcp.prompt
def writing_assistant(
    content_type: Annotated[str, Field(description="Type of the text: email, documentation or blog.")],
    audience: Annotated[str, Field(description="Readers of the text.")],
    key_points: Annotated[list[str], Field(description="Points to make, as a JSON list.")],
    tone: Annotated[str, Field(description="Tone of the text.")] = "professional",
) -> PromptResult:
    """Helps to write a text, point by point."""
    messages = [Message(f"I help to write a {content_type} for {audience} in a {tone} tone.", role="assistant")]
    for number, point in enumerate(key_points, 1):
        messages.append(Message(f"Point {number}: {point}. What do you suggest?"))
        messages.append(Message(f"For {point} I suggest:", role="assistant"))
    return PromptResult(messages, description=f"A {content_type} for {audience}")


@mcp.prompt
def debug_assistant(
    error_message: Annotated[str, Field(description="Error message or symptom.")],
    stack: Annotated[list[str], Field(description="Technologies in use, as a JSON list.")],
    tried_solutions: Annotated[list[str], Field(description="What did not help, as a JSON list.")] = [],
) -> PromptResult:
    """Helps to find the cause of an error."""
    if not stack:
        raise ValueError("the stack is empty")
    messages = [
        Message(f"You debug programs with {', '.join(stack)}.", role="assistant"),
        Message(f"I get this error: {error_message}"),
    ]
    if tried_solutions:
        messages.append(Message(f"I have tried: {', '.join(tried_solutions)}"))
    return PromptResult(messages, description=f"An error in {stack[0]}")


@mcp.prompt
def learning_path() -> list[Message]:
    """Plans what to learn next, by the preferences of the user."""
    lessons = f"You plan lessons in {preferences.language} for the level {preferences.level}."
    return [Message(lessons, role="assistant"), Message("What should I learn next?")]


if __name__ == "__main__":
    mcp.run()
