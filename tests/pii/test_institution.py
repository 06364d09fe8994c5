"""Hospitals and schools: named ones are found whole, generic ones and everything else stay."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.institutions import hospital, school
from curate.pii.institutions_short import hospital_short
from tests.support import recognising
from tests.support.recognising import Recogniser


def lines(text: str, separator: str = "\n") -> list[str]:
    return [line for line in text.replace(separator, "\n").split("\n") if line]


HOSPITALS = lines(
    """
长沙市中心医院 浙江省中医院 四川大学华西医院 合肥市第二人民医院 北京协和医院 解放军301医院 武汉同济医院 湘雅二医院
太康县人民医院
太康县妇幼保健院 马厂镇卫生院 望京街道社区卫生服务中心 王氏诊所 李医生诊所 中国医科大学附属第一医院 长沙市疾控中心
玛丽医院 長庚醫院
臺大醫院 臺北榮民總醫院 高雄醫學大學附設中和紀念醫院 南昌大学第二附属医院 复旦大学附属中山医院
首都医科大学附属北京天坛医院
华中科技大学同济医学院附属协和医院 解放军总医院第五医学中心 武警湖南总队医院 海军军医大学第一附属医院 浙大一院
郑大一附院 北医三院
哈医大二院 长沙市一医院 徐州市第一人民医院 上海交通大学医学院附属瑞金医院 上海市第六人民医院东院
广州市妇女儿童医疗中心 北京大学第三医院
北京大学人民医院 南方医科大学南方医院 深圳市宝安区中心医院 新疆维吾尔自治区人民医院 内蒙古医科大学附属医院
呼和浩特市蒙医医院
大理白族自治州人民医院 南京市鼓楼区妇幼保健所 解放军第一七五医院 成都市第三人民医院 郑州颐和医院 西安高新医院
武汉亚洲心脏病医院
上海市浦东新区周浦医院 威海市立医院 青岛市市立医院 昆明医科大学第一附属医院 天津市第三中心医院 北京大学深圳医院
香港大学深圳医院
湖南省脑科医院 广州市第八人民医院 广东省人民医院 东莞市厚街医院 昆山市第一人民医院 石河子大学医学院第一附属医院
威尔斯亲王医院
伊丽莎白医院 中南大学湘雅三医院 河南省周口市太康县马厂镇卫生院 北京儿童医院 上海瑞金医院 南京鼓楼医院
西安交通大学第一附属医院
解放军４５５医院 302医院 邵逸夫医院 佑安医院 北京中日友好医院 广州军区医院 重庆西南医院 北京市海淀区妇幼保健院
太康县医院
山东省立医院 成都军区昆明总医院 广东省中医院珠海医院 武警总医院 桂林181医院 香港玛嘉烈医院 广西医科大一附院 北京军都医院
""",
    " ",
)

GENERIC = lines(
    """
医院 正规医院 三甲医院 大医院 当地医院 人民医院 县医院 市医院 省医院 专科医院 肝病医院 中医院 妇产医院 儿童医院
精神病医院 附近的医院
二甲以上医院 综合性医院 公立医院 私立医院 军队医院 部队医院 你们当地的市人民医院 正规的三级甲等医院 北京上海的大医院
北京的医院 国外医院
某医院 某市中心医院 我们县人民医院 市第一人民医院 第一医院 中心医院 附属医院 医科大学附属医院 大学附属医院 教学医院
北京癫痫医院
上海最好的医院 广州治疗白癜风的医院 北京三甲医院 省城医院 上级医院 乡镇卫生院 村卫生室 社区卫生服务中心 社区医院
私人诊所 小诊所
牙科诊所 村里的诊所 中医诊所 门诊部 疾控中心 当地疾控中心 中国疾控中心 体检中心 卫生院 县妇幼保健院 妇幼保健院
妇幼保健医院 医疗中心
宠物医院 省人民医院 区医院 镇医院 就近医院 最近的医院 更好的医院 各大医院 传染病医院 地方医院 级别高一点的医院
省级以上医院 县城医院
军区总医院 大型综合医院 老家的县人民医院 家附近的卫生院 市里的医院 肿瘤专科医院 单位医院 校医院 厂职工医院 哪家医院
好几家医院
""",
    " ",
)

NO_HOSPITALS = lines(
    """
昨天住院，今天出院，二次入院
北京医院哪家好
去北京看癫痫哪家医院好
同济大学的研究表明
北京协和医学院教材第八版
华西医学杂志发表
北京同仁堂的药，华山医药
301不锈钢，拍了302张片
协和的意见，同济的说法
哈药集团三精制药，江苏恒瑞医药
湘雅名医在线答疑
一院一策，住了一院子人
在医院里附一张单子
中医院校毕业的人
三院制，两院院士
医院附近的药店
建议尽快住医院
去取医院的报告
进行咨询具体医院的消化科
由于尿血住医院
现在脑科医院很多
今天社区医院健康检查
市妇幼和市儿童医院，乡卫生院和镇卫生院
郑州不孕不育医院，成都白癜风医院，上海肝病专科医院
浙江省的省级医院，山东省内的医院，中国的医院
同济大学出版社，浙江大学学报
""",
)


def values(recogniser: Recogniser, text: str) -> list[str]:
    return recognising.found(recogniser, text)


@pytest.mark.parametrize("name", HOSPITALS)
def test_hospitals_in_every_form(name: str) -> None:
    for text in (
        name,
        f"我在{name}看过",
        f"昨天去{name}检查，",
        f"（{name}）",
        f"妈妈{name}确诊",
        f"。{name}，{name}",
        f"就诊医院：{name}",
    ):
        assert set(values(hospital, text)) == {name}, text


@pytest.mark.parametrize("name", GENERIC)
def test_hospitals_of_no_name_stay(name: str) -> None:
    for text in (name, f"建议您去{name}做检查", f"昨天{name}说", f"我在{name}", f"到{name}复查。", f"，{name}"):
        assert values(hospital, text) == []


@pytest.mark.parametrize("text", NO_HOSPITALS)
def test_what_is_no_hospital_stays(text: str) -> None:
    assert values(hospital, text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("在华西看过", "华西"),
        ("去湘雅二检查", "湘雅二"),
        ("到武汉同济做手术", "武汉同济"),
        ("转到北京协和治疗", "北京协和"),
        ("去301看病", "301"),
        ("在盛京住院", "盛京"),
        ("在脑康中医院看过", "脑康中医院"),
        ("送到康民门诊部急救", "康民门诊部"),
    ],
)
def test_short_forms_and_unknown_names_need_somebody_who_goes_there(text: str, name: str) -> None:
    assert values(hospital, text) + values(hospital_short, text) == [name]
    heard = f"听说{name}不错"
    assert values(hospital, heard) + values(hospital_short, heard) in ([], [name] if name.endswith("中医院") else [])


CITIES = st.sampled_from(
    ["长沙市", "徐州", "河南省周口市", "乌鲁木齐市", "台北市", "湖北宜昌", "海淀区", "大悟县", "深圳市龙岗区"]
)
KINDS = st.sampled_from(
    ["中心", "第一人民", "第十二人民", "中医", "妇幼保健", "儿童", "肿瘤", "传染病", "第3人民", "口腔"]
)
IN_FRONT = st.sampled_from(["", "我在", "去了", "转到", "，", "患者于", "复诊："])
BEHIND = st.sampled_from(["", "看过", "，", "的医生", "住院5天", "确诊"])


@settings(max_examples=200)
@given(CITIES, KINDS, IN_FRONT, BEHIND)
def test_every_kind_in_every_city(city: str, kind: str, before: str, behind: str) -> None:
    name = f"{city}{kind}医院"
    assert values(hospital, f"{before}{name}{behind}") == [name]


@pytest.mark.parametrize(
    "marked",
    lines(
        """
我就读于<清华大学> 我在<北京大学>读书 女儿在<长沙市第一中学>上学 孩子就读<育才中学> 毕业于<中南大学湘雅医学院>
我是<武汉大学>的学生 我在<复旦大学>大三 儿子在<阳光幼儿园>上中班 在<实验小学>读三年级 考上<北大>了 在<清华>读研
我是<太康县第二高级中学>高二学生 妈妈在<朝阳区实验小学>工作 就读于<香港中文大学> 就讀於<國立臺灣大學>
学校：<育才小学> 毕业院校：<四川大学华西医学院> 在<七中>读高二 女儿考入<长沙市雅礼中学>
""",
        " ",
    ),
)
def test_schools_that_somebody_goes_to(marked: str) -> None:
    text, name = re.sub("[<>]", "", marked), marked[marked.index("<") + 1 : marked.index(">")]
    for around in (text, f"你好，{text}，头痛", f"{text}。"):
        assert values(school, around) == [name]


@pytest.mark.parametrize(
    "text",
    lines(
        """
哈佛大学研究发现 清华大学的研究 上大学 我在上小学三年级 刚读小学六年级 在大学读书 老年大学上课 幼儿园老师 在学校读书
我是医科大学学生
在重点中学读书 在北京上大学 同学在医学院学习 大学毕业 我刚刚升入大学 在职高读书 就读于某大学 北京协和医学院教材
在上海读书 孩子上幼儿园大班
在长沙读高中 高中学生 初中毕业 我弟弟在上初中一年级 就读于当地的中学 广东医科大学附属医院 在镇中学读书 女大学生
小学生近视 大学生体检
上海交通大学医学院附属瑞金医院 考大学了 毕业后一直头晕 学校让我再打疫苗 在学校突发癫痫 大学的时候查出来的 读大学了
去幼儿园做保育员
中学生物课 高中低三个剂量 初中期治疗 小学习惯 医学院校的教材 复旦大学出版 上了大学病发时间少 国内大学排名
武汉大学樱花
""",
        " ",
    ),
)
def test_schools_of_no_name_or_of_nobody_stay(text: str) -> None:
    for around in (text, f"我{text}", f"你好，{text}，头痛"):
        assert values(school, around) == []


def test_hospitals_planted_in_real_questions(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "pii" / "positives.jsonl").read_text("utf-8").splitlines()]
    planted = [[each["text"] for each in row["spans"] if each["label"] == "HOSPITAL"] for row in rows]
    assert sum(map(len, planted)) == 30
    assert [values(hospital, row["text"]) for row in rows] == planted


@pytest.mark.parametrize("recogniser", [hospital, school])
def test_medical_terms_hold_no_name(recogniser: Recogniser, shared_data: Path) -> None:
    terms = (shared_data / "synonyms" / "thuocl_medical_lexicon.tsv").read_text("utf-8").split()
    named = ["协和医院", "西京医院"] if recogniser is hospital else []
    assert [term for term in terms if recogniser(f"患有{term}，")] == named


@pytest.mark.parametrize("recogniser", [hospital, school])
def test_placeholders_and_gone_text_hold_no_name(recogniser: Recogniser) -> None:
    for text in ("[医院]", "在[医院]看过", "就读于[学校]", "■■■医院", "在■■大学读书", "[地址]人民医院"):
        assert values(recogniser, text) == []
