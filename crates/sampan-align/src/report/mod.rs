//! The verdict for people: text, a page, and the logs of `reprod_log`.

mod html;
mod logs;
mod plots;
mod text;
